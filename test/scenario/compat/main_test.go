// Package compat compares the responses of the API server and the output of the client with
// OpenShift 3.11's. Each file has one theme. All tests share one cluster with the default
// configuration.
package compat

import (
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
