# Installs the build in BINARY_DIR into a new folder and uses the commands there, from another folder,
# on the bundled model in SOURCE_DIR.
set(root ${BINARY_DIR}/install_test)
file(REMOVE_RECURSE ${root})
file(MAKE_DIRECTORY ${root}/elsewhere)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BINARY_DIR} --prefix ${root}/prefix
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
function(run)
  execute_process(COMMAND ${ARGV} WORKING_DIRECTORY ${root}/elsewhere COMMAND_ERROR_IS_FATAL ANY)
endfunction()
set(bin ${root}/prefix/bin)
set(model ${SOURCE_DIR}/models/blazeface_front)
# The source's own targets must not be needed; an installed file must do as a target.
run(${bin}/dlac ${model}/model.onnx -o named.bin --target edge32 --quiet)
run(${bin}/dlac ${model}/model.onnx -o file.bin --quiet
    --target ${root}/prefix/share/dla/targets/edge32-unified.json)
run(${bin}/dladump verify named.bin)
# ONNX Runtime's answer is up to 3.5e-5 away from what 64-bit arithmetic gives.
run(${bin}/dlarun file.bin --inputs ${model}/inputs.npz --expected ${model}/expected.npz --atol 1e-4)
foreach(file share/dla/targets/target.schema.json share/doc/dla/LICENSE share/man/man1/dlac.1)
  if(NOT EXISTS ${root}/prefix/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
file(REMOVE_RECURSE ${root})
