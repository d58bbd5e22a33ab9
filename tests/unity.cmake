# The sources of a folder compiled as one (CUBRIDGE_UNITY): a sanitizer's build takes a third of the time, for most of it is
# templates that each file has instrumented anew. The ordinary build does not, so every file still names what it includes.
# A folder's file whose own names (in its unnamed namespace, or by `using`) another of the folder has too stays alone;
# so does whatever collides later: add it here, or better, rename.
set(alone
    bindings/cli/check.cpp
    ir/cost/operations.cpp
    ir/cuir/evaluate.cpp
    ir/cuir/flow.cpp
    ir/expr/pool.cpp
    ir/lower/expression_type.cpp
    ir/lower/margin.cpp
    ir/lower/shape.cpp
    ir/spec/certify.cpp
    ir/spec/concrete.cpp
    ir/spec/library_making.cpp
    ir/spec/library_product.cpp
    ir/spec/library_python.cpp
    ir/spec/library_reduce.cpp
    ir/spec/library_shape.cpp
    ir/spec/operators.cpp
    ir/syntax/lexer.cpp
    ir/transfer/erase.cpp
    ir/transfer/make.cpp
    ir/transfer/places.cpp
    ir/transfer/rule_constant_bias.cpp
    ir/transfer/rule_destination.cpp
    ir/transfer/rule_output.cpp
    ir/transfer/rule_score.cpp
    ir/transfer/spots.cpp
    runtime/check/image.cpp
    runtime/gate/uses.cpp
    runtime/launch/check.cpp
    runtime/registry/table.cpp
    runtime/registry/work.cpp
    runtime/worker/wire.cpp
    runtime/worker/worker_compiler.cpp
    tests/unit/bindings/program_test.cpp
    tests/unit/ir/lower/hopper_test.cpp
    tests/unit/ir/lower/matrix_test.cpp
    tests/unit/ir/lower/rules_test.cpp
    tests/unit/ir/spec/hostile_test.cpp
    tests/unit/ir/spec/symbolic_test.cpp
    tests/unit/ir/spec/variant_test.cpp
    tests/unit/ir/syntax/parser_test.cpp
    tests/unit/ir/transfer/meaning_test.cpp
    tests/unit/ir/transfer/residue_test.cpp
    tests/unit/runtime/check/rounding_test.cpp
    tests/unit/runtime/launch/launch_test.cpp
)

foreach(target cubridge_ir cubridge_cache cubridge_runtime cubridge cubridge_cli unit_ir unit_cache unit_runtime unit_bindings)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source ${sources})
    get_filename_component(path ${source} ABSOLUTE BASE_DIR ${folder})
    file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${path})
    if(name MATCHES "\\.cpp$" AND NOT name MATCHES "^(build/|\\.\\./)" AND NOT name IN_LIST alone)
      get_filename_component(group ${name} DIRECTORY)
      string(REPLACE "/" "_" group ${group})
      set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endforeach()
