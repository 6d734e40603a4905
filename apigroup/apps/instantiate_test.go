package apps

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestEachAcceptedRequestStartsDeployment(t *testing.T) {
	const latest = 3
	dc := deployed("web", latest)
	if err := startVersion(dc, latest); err != nil || dc.Status.LatestVersion != 4 || dc.Status.Details.Message != "manual change" {
		t.Errorf("first request: version %d, details %v, error %v", dc.Status.LatestVersion, dc.Status.Details, err)
	}
	// The second request read the configuration before the first request changed it.
	if err := startVersion(dc, latest); !apierrors.IsConflict(err) || dc.Status.LatestVersion != 4 {
		t.Errorf("second request: version %d, error %v, want a conflict", dc.Status.LatestVersion, err)
	}
	dc.Status.Details.Causes = []appsv1.DeploymentCause{{Type: appsv1.DeploymentTriggerOnConfigChange}}
	if err := startVersion(dc, latest); err != nil || dc.Status.LatestVersion != 4 {
		t.Errorf("after a controller started a deployment: version %d, error %v", dc.Status.LatestVersion, err)
	}
}
