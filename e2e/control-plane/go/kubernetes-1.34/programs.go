//go:build programs

// Package kubernetes pins the programs of the control plane that come from k8s.io/kubernetes.
package kubernetes

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
