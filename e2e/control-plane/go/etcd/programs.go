//go:build programs

// Package etcd pins the etcd program of the control plane.
package etcd

import _ "go.etcd.io/etcd/server/v3"
