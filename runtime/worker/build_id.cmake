# Writes a source file with a digest over the library's sources: cmake -DROOT= -DVERSION= -DOUT= -P build_id.cmake
# SPDX-License-Identifier: Apache-2.0
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/ir/* ${ROOT}/cache/* ${ROOT}/runtime/*)
list(SORT files)
set(all "")
foreach(file ${files})
  file(SHA256 ${ROOT}/${file} digest)
  string(APPEND all "${file} ${digest}\n")
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT}.new
     "// Made from the library's sources. SPDX-License-Identifier: Apache-2.0\n"
     "#include \"cubridge/runtime/worker.h\"\n\nnamespace cubridge::runtime {\n\n"
     "const char* build_id() {\n    return \"${VERSION}-${digest}\";\n}\n\n} // namespace cubridge::runtime\n")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.new ${OUT})
