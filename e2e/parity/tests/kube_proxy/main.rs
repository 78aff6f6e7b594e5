//! What kube-proxy makes of imported slices: upstream's own code reads a Service and the slices that we
//! plan for it, and says which endpoints clients on a node reach.

mod clusters;
mod judge;
mod namespaces;
