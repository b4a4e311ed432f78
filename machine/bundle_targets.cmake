# Writes bundled_targets.cc from targets/*.json at configure time; a change of any of them
# configures anew. The delimiter of the raw strings cannot occur in JSON outside of strings.
file(GLOB target_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/targets/*.json)
list(FILTER target_files EXCLUDE REGEX "schema\\.json$")
list(SORT target_files)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${target_files})
set(DLA_BUNDLED_ROWS "")
foreach(file IN LISTS target_files)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND DLA_BUNDLED_ROWS "    {\"${name}\", R\"__json__(${text})__json__\"},\n")
endforeach()
configure_file(bundled_targets.cc.in ${CMAKE_CURRENT_BINARY_DIR}/bundled_targets.cc @ONLY)
