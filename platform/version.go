package platform

import (
	"encoding/json"
	"net/http"
	"runtime"

	machineryversion "k8s.io/apimachinery/pkg/version"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/version"
)

// openShift is the version of OpenShift whose API is served.
const openShift = "v3.11.0"

// versionFeature answers /version/openshift, which clients of OpenShift 3 ask beside Kubernetes' /version, with
// the version of OpenShift and, behind a plus sign, this program's.
func versionFeature() apiserver.Feature {
	info := machineryversion.Info{
		Major: "3", Minor: "11+", GitVersion: openShift + "+slipway-" + version.Slipway(),
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	return apiserver.Feature{Hooks: func(apiserver.Deps) (apiserver.Hooks, error) {
		return apiserver.Hooks{Handlers: []apiserver.Handler{{Path: "/version/openshift", Public: true,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(info) // who asked is gone
			})}}}, nil
	}}
}
