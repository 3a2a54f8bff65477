// Adds up a batch on several devices: each adds its share of the sources to sums of its own, which
// are added to T at the end.
#pragma once

#include <memory>

#include "gpu/scatter.h"
#include "gpu/several/device_set.h"

namespace stride {

// devices: outlives it, and what it makes. One device alone does what is started on a stream,
// reproducible sums of floats (a cut of all sources), sources that lie in the memory of one device,
// T of more than a sixteenth of the sources' bytes, and prepared scatters. Of all else T is as it
// was where a call fails, unless memory for T's own copies of it runs out while they are added.
std::unique_ptr<Scatter> make_several_scatter(DeviceSet& devices);

}  // namespace stride
