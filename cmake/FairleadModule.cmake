# fairlead_module(NAME SOURCES... DEPS... TESTS... TEST_DEPS...)
#
# One module of the project is one static library target. SOURCES and TESTS are files of the
# module's folder; DEPS are targets, and the only way to use another module. All TESTS of a module
# are one executable NAME_test with one ctest entry of label unit, so that its cost is one link.
function(fairlead_module NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${NAME} STATIC ${ARG_SOURCES})
    # Warnings, sanitizers and the linker are ours: what installs the module (FairleadInstall) gets none.
    target_link_libraries(${NAME} PUBLIC $<BUILD_INTERFACE:fairlead_options> ${ARG_DEPS})
    fairlead_precompile(${NAME} fairlead_pch)
  else()
    add_library(${NAME} INTERFACE)
    target_link_libraries(${NAME} INTERFACE $<BUILD_INTERFACE:fairlead_options> ${ARG_DEPS})
  endif()
  # For tests/layering: folder, target, what it links and what its tests link besides.
  string(REPLACE ";" " " deps "${ARG_DEPS} | ${ARG_TEST_DEPS}")
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set_property(GLOBAL APPEND_STRING PROPERTY FAIRLEAD_MODULES "${folder} ${NAME}: ${deps}\n")
  if(ARG_TESTS)
    add_executable(${NAME}_test ${ARG_TESTS})
    target_link_libraries(${NAME}_test PRIVATE ${NAME} ${ARG_TEST_DEPS} GTest::gtest GTest::gmock
      GTest::gtest_main)
    fairlead_precompile(${NAME}_test fairlead_test_pch)
    set_target_properties(${NAME}_test PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${NAME} COMMAND ${NAME}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${NAME} PROPERTIES LABELS unit TIMEOUT 600)
    set_property(GLOBAL APPEND PROPERTY FAIRLEAD_TESTS_unit ${NAME}_test)
  endif()
endfunction()

# fairlead_add_groups(): the targets that scripts build. After the last module.
#   programs             every executable that is not a test, into bin/
#   unit-tests           every test program with label unit, the default
#   thread-tests         the test programs of modules with threads; ctest label thread, with TSan only
#   integration-tests    what ctest labels integration and day run
#   generated-headers    what clang-tidy needs
function(fairlead_add_groups)
  add_custom_target(programs DEPENDS fairlead fairlead-gpu-index fairlead-simtest fairlead-bench fairlead_conformance fairlead_dashboard_page fairlead_replay)
  get_property(unit_tests GLOBAL PROPERTY FAIRLEAD_TESTS_unit)
  add_custom_target(unit-tests DEPENDS ${unit_tests})
  add_custom_target(integration-tests DEPENDS fairlead fairlead-gpu-index fairlead-head-to-head fairlead_integration
    fairlead_differential)
  # Not fairlead_remote_plugins: Debian's gRPC is built without TSan, which does not see what orders its threads.
  set(threaded fairlead_kube_credentials fairlead_kube_http fairlead_kube_watch fairlead_kube_write fairlead_kube_leader fairlead_server fairlead_usage_prometheus fairlead_extenders
    fairlead_cmd_app fairlead_cmd_logs fairlead_cmd_run fairlead_cmd_settings fairlead_cmd_traces fairlead_cmd_webhook)
  list(TRANSFORM threaded APPEND _test OUTPUT_VARIABLE threaded_tests)
  add_custom_target(thread-tests DEPENDS ${threaded_tests})
  if(FAIRLEAD_SANITIZE MATCHES "thread")
    foreach(name ${threaded})
      add_test(NAME ${name}_threads COMMAND ${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
      set_tests_properties(${name}_threads PROPERTIES LABELS thread TIMEOUT 600)
    endforeach()
  endif()
  add_custom_target(generated-headers DEPENDS fairlead_kube_core_subset fairlead_plugin_proto fairlead_guests_proto fairlead_external_grpc_proto)
  get_property(modules GLOBAL PROPERTY FAIRLEAD_MODULES)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/modules.txt "${modules}")
endfunction()
