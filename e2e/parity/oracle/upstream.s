// Empty on purpose: the compiler accepts functions without a body (upstream.go)
// only in a package that has an assembly file.
