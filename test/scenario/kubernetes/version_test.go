package kubernetes

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestVersionNamesTheBuild checks the server version that `kubectl version -o yaml` prints.
func TestVersionNamesTheBuild(t *testing.T) {
	c := kit.Shared(t)
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	built, err := time.Parse(time.RFC3339, version.BuildDate)
	if err != nil || built.Before(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("buildDate %q, %v", version.BuildDate, err)
	}
	if strings.Trim(version.GitCommit, "0123456789abcdef") != "" || len(version.GitCommit) != 40 || version.GitTreeState == "" {
		t.Errorf("gitCommit %q, gitTreeState %q", version.GitCommit, version.GitTreeState)
	}
}
