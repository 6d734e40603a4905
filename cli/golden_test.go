package cli

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	objectstest.Golden(t, filepath.Join("testdata", name), got, *update)
}
