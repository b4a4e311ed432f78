# Flags that every target of this project gets through dla_library() and dla_executable().
add_library(dla_options INTERFACE)
# Results must not depend on how the compiler contracts a * b + c.
target_compile_options(dla_options INTERFACE -ffp-contract=off)
target_include_directories(dla_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_definitions(dla_options INTERFACE DLA_VERSION="${PROJECT_VERSION}")
if(DLA_WERROR)
  target_compile_options(
    dla_options INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Wcast-align
    -Wnon-virtual-dtor -Woverloaded-virtual -Werror
    # GCC 12 warns of designated initialisers that leave members at their defaults.
    -Wno-missing-field-initializers)
  # GCC 12 sees an overlap in std::string's operator+ that cannot be (its bug 105651).
  target_compile_options(dla_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # The ## in DLA_CHECK.
  target_compile_options(dla_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-gnu-zero-variadic-macro-arguments>)
endif()

# dla_library(NAME SOURCES ... DEPENDS ...): a folder's library, linked as dla::NAME.
function(dla_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(dla_${name} STATIC ${ARG_SOURCES})
  add_library(dla::${name} ALIAS dla_${name})
  target_link_libraries(dla_${name} PUBLIC ${ARG_DEPENDS} PRIVATE dla_options ${ARG_PRIVATE_DEPENDS})
endfunction()

# dla_executable(NAME SOURCES ... DEPENDS ...)
function(dla_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE dla_options ${ARG_DEPENDS})
endfunction()
