# What `cmake --install` installs: the package Fairlead, for plugins in repositories of their own
# (docs/writing-a-plugin.md).
#   Fairlead::plugin_api   what a plugin is made of: framework, state, model, built-in plugins
#   Fairlead::main         the command line of every subcommand, for the program of the plugins
# Headers lie in include/fairlead, so that an #include is what it is in this tree.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# Headers that plugins and their programs and tests include. Those that these include come along.
set(FAIRLEAD_PUBLIC_HEADERS
  cmd/main/command_line.h
  scheduler/framework/binding_points.h
  scheduler/framework/enqueue_points.h
  scheduler/framework/framework.h
  scheduler/framework/scheduling_points.h
  scheduler/model/testing/builders.h
  scheduler/plugins/args.h
  scheduler/plugins/common.h
  scheduler/plugins/normalize.h
  scheduler/plugins/registry.h)

# fairlead_linked_modules(OUT TARGET): TARGET and every module that it links.
function(fairlead_linked_modules OUT TARGET)
  set(found "")
  set(open ${TARGET})
  while(open)
    list(POP_FRONT open each)
    if(each IN_LIST found)
      continue()
    endif()
    list(APPEND found ${each})
    get_target_property(links ${each} INTERFACE_LINK_LIBRARIES)
    list(FILTER links INCLUDE REGEX "^fairlead_")
    list(APPEND open ${links})
  endwhile()
  set(${OUT} ${found} PARENT_SCOPE)
endfunction()

# fairlead_install(): after the last module. Installs nothing that tests alone use, and no program.
function(fairlead_install)
  add_library(fairlead_plugin_api INTERFACE)
  target_link_libraries(fairlead_plugin_api INTERFACE fairlead_plugins)
  fairlead_linked_modules(modules fairlead_main)
  foreach(module ${modules} fairlead_plugin_api)
    string(REGEX REPLACE "^fairlead_" "" name ${module})
    set_target_properties(${module} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  target_include_directories(fairlead_base
    INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/fairlead>)
  target_compile_features(fairlead_base INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
  # The libraries that install needs: fairlead_main links all of them.
  add_custom_target(sdk DEPENDS ${modules})

  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Fairlead)
  install(TARGETS ${modules} fairlead_plugin_api EXPORT Fairlead
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/fairlead)
  install(EXPORT Fairlead NAMESPACE Fairlead:: FILE FairleadTargets.cmake DESTINATION ${package})
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/FairleadConfig.cmake.in
    ${CMAKE_BINARY_DIR}/generated/FairleadConfig.cmake INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/FairleadConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/FairleadConfig.cmake
    ${CMAKE_BINARY_DIR}/generated/FairleadConfigVersion.cmake DESTINATION ${package})
  # At that time, because headers change without a new configuration.
  install(CODE "
    set(ROOT \"${CMAKE_SOURCE_DIR}\")
    set(HEADERS \"${FAIRLEAD_PUBLIC_HEADERS}\")
    set(DESTINATION \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/fairlead\")
    include(\"${CMAKE_SOURCE_DIR}/cmake/InstallHeaders.cmake\")")
endfunction()
