// `dlac map`: maps a plain list of layer shapes, without a model.
#pragma once

namespace dla {

// argv[0] is "map". Returns the exit code.
int RunMap(int argc, char** argv);

}  // namespace dla
