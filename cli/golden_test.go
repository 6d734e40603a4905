package cli

import (
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// Golden compares got with the golden file called name in testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	objectstest.Golden(t, filepath.Join("testdata", name), got)
}
