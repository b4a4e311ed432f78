// ONNX's protobuf classes; no other folder includes them.
#pragma once

#include <onnx/onnx_pb.h>
