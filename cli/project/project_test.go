package project

import (
	"strings"
	"testing"

	projectv1 "github.com/openshift/api/project/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestProjectsAreListedWithDisplayNames(t *testing.T) {
	shop := projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"openshift.io/display-name": "A shop"}}}
	plain := projectv1.Project{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	var out strings.Builder
	for _, projects := range [][]projectv1.Project{nil, {shop}, {plain, shop}} {
		writeProjects(&out, projects, "shop", "https://master:8443")
		out.WriteString("---\n")
	}
	objectstest.Golden(t, "testdata/projects.golden", out.String())
}
