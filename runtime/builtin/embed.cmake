# Makes ${out} from the specifications of this folder: each .py file becomes one string.
# The first line of a file is its title, written as a comment.
function(cubridge_embed_specifications out)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/builtin/*.py)
  list(SORT files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(rows "")
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(REGEX MATCH "^# ([^\n]*)" unused "${text}")
    set(title "${CMAKE_MATCH_1}")
    string(APPEND rows "    {R\"py(${name})py\", R\"py(${title})py\", R\"py(${text})py\"},\n")
  endforeach()
  file(WRITE ${out}.new
       "// Made from runtime/builtin/*.py. SPDX-License-Identifier: Apache-2.0\n"
       "#include \"cubridge/runtime/builtin.h\"\n\nnamespace cubridge::runtime {\n\n"
       "std::span<const BuiltIn> built_in_specifications() {\n    static constexpr BuiltIn all[] = {\n${rows}    };\n"
       "    return all;\n}\n\n} // namespace cubridge::runtime\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${out}.new ${out})
endfunction()
