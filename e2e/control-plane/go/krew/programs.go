//go:build programs

// Package krew pins krew, which installs the plugin for kubectl in a test.
package krew

import _ "sigs.k8s.io/krew/cmd/krew"
