// Package compat compares the API server's responses and the client's output with the responses and
// output of OpenShift 3.11. Each file covers one topic. All tests share one cluster with the
// default configuration.
package compat

import (
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
