// Package compat compares what clients of OpenShift 3.11 receive with what 3.11 sent them: the
// responses of the API server and the output of the client. Each file has one theme. All tests
// share one cluster with the default configuration.
package compat

import (
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }
