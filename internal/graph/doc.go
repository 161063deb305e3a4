// Package graph turns what a user's program describes into what runs: logical nodes become chains, chains become the
// vertices of a job, vertices become subtasks.
//
//	Logical{Nodes, Edges}  --Build-->  Job{Vertices}          one Vertex is one chain, run by Parallelism subtasks
//
// Nouns: a Node is one operator as the program names it; an Edge carries records of one output of a node to one input of
// another, distributed by its Partitioning; a Vertex is a chain of nodes that run in one task; a Link is an edge between
// two vertices, which the exchange carries.
//
// # Invariants
//
//  1. The nodes of a vertex are in chain order: the head first, each after the node it is chained to.
//  2. Only the head of a vertex has inputs from other vertices; a chained node has exactly one input edge.
//  3. The graph has no cycle (edges go from lower to higher node numbers: a program can only use streams that it has made).
//  4. The same program and options build the same Job, with the same Hash, in every process.
//
// What nodes do is opaque here: factories and codecs are values of higher floors. The package is pure.
package graph
