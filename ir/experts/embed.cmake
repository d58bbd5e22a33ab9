# Makes ${out} from the experts of this folder: each .cu becomes one string, with what it includes in its place.
function(cubridge_embed_experts out)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/experts)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/*.cu)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.cuh)
  list(SORT files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files} ${headers})
  set(rows "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    foreach(header ${headers})
      get_filename_component(header_name ${header} NAME)
      file(READ ${header} included)
      string(REPLACE "#include \"${header_name}\"\n" "${included}" text "${text}")
    endforeach()
    string(APPEND rows "    {\"${name}\", R\"cu(${text})cu\"},\n")
  endforeach()
  file(WRITE ${out}.new
       "// Made from ir/experts/*.cu. SPDX-License-Identifier: Apache-2.0\n"
       "#include \"ir/experts/experts.h\"\n\nnamespace cubridge::ir::experts {\n\n"
       "std::span<const Expert> all() {\n    static constexpr Expert experts[] = {\n${rows}    };\n"
       "    return experts;\n}\n\n} // namespace cubridge::ir::experts\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${out}.new ${out})
endfunction()
