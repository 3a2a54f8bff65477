// The kinds of nodes that a tree can have, and what follows from what they say of themselves.
#pragma once

#include <cstdint>

#include "gpu/tree/nodes/bitmap.h"
#include "gpu/tree/nodes/dense.h"

namespace stride {

template <class... Kinds>
struct NodeKindList {};
// In the order of what a visit costs, the cheapest first. The first is that of every root.
using AllNodeKinds = NodeKindList<DenseNodes, BitmapNodes>;

// Calls f(SomeNodes()) for the kind, or for the last where it is none of them. Compiles to one
// comparison for each kind but the last.
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class F, class First, class... Others>
STRIDE_HD constexpr decltype(auto) visit_kind(NodeKind kind, const F& f,
                                              NodeKindList<First, Others...>) {
  if constexpr (sizeof...(Others) > 0) {
    if (kind != First::kind) return visit_kind(kind, f, NodeKindList<Others...>());
  }
  return f(First());
}
#if defined(__CUDACC__)
#pragma nv_exec_check_disable
#endif
template <class F>
STRIDE_HD constexpr decltype(auto) visit_kind(NodeKind kind, const F& f) {
  return visit_kind(kind, f, AllNodeKinds());
}

// Calls f(SomeNodes()) for each kind in turn.
template <class F, class... Kinds>
constexpr void each_kind(const F& f, NodeKindList<Kinds...>) {
  (f(Kinds()), ...);
}
template <class F>
constexpr void each_kind(const F& f) {
  each_kind(f, AllNodeKinds());
}

inline bool is_node_kind(uint32_t number) {
  bool known = false;
  each_kind([&](auto nodes) { known |= number == static_cast<uint32_t>(nodes.kind); });
  return known;
}

inline bool has_words(NodeKind kind) {
  return visit_kind(kind, [](auto nodes) { return nodes.has_words; });
}
inline uint64_t words_of_node(NodeKind kind, uint32_t stride) {
  return visit_kind(kind, [&](auto nodes) { return nodes.words_of_node(stride); });
}
// 0: one for each slot that has keys, and one more.
inline uint64_t starts_of_node(NodeKind kind, uint32_t stride) {
  return visit_kind(kind, [&](auto nodes) { return nodes.starts_of_node(stride); });
}
// The starts of so many nodes, of which `filled` slots have keys. Number: double for expectations.
template <class Number>
Number starts_of(NodeKind kind, uint32_t stride, Number nodes, Number filled) {
  const uint64_t each = starts_of_node(kind, stride);
  return each ? nodes * static_cast<Number>(each) : filled + nodes;
}
inline uint64_t words_of(const TreeLevel& level) {
  return level.nodes * words_of_node(static_cast<NodeKind>(level.kind), level.stride);
}

template <class Level>
STRIDE_HD inline EntryRef find_entry(const Level& level, uint32_t node, uint32_t slot) {
  return visit_kind(level.kind, [&](auto nodes) { return nodes.find(level, node, slot); });
}
// The ranks of all keys of a node.
STRIDE_HD inline RankInterval ranks_of_node(const LevelRef& level, uint32_t node) {
  return visit_kind(level.kind, [&](auto nodes) { return nodes.ranks_of_node(level, node); });
}

}  // namespace stride
