package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/platform/upgrade"
)

func TestDeprecatedAPIsAreReadFromMetrics(t *testing.T) {
	got, err := deprecatedAPIs([]byte(`# HELP apiserver_requested_deprecated_apis Gauge of deprecated APIs
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="",removed_release="",resource="endpoints",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="batch",removed_release="1.38",resource="cronjobs",subresource="status",version="v1beta1"} 1
`))
	if want := []upgrade.API{{Name: "cronjobs.v1beta1.batch", Removed: "1.38"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := deprecatedAPIs(nil); len(got) > 0 || err != nil {
		t.Errorf("without metrics: %v, %v", got, err)
	}
}

func TestUpgradeOnlyChecks(t *testing.T) {
	if err := runVerb(t.TempDir(), "upgrade"); err == nil || !strings.Contains(err.Error(), "install the new program on one host after the other") {
		t.Errorf("got %v", err)
	}
}
