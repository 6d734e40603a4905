package apiserver

import (
	"encoding/json"
	"net/http"
	"runtime"

	machineryversion "k8s.io/apimachinery/pkg/version"

	"github.com/slipway-platform/slipway/internal/version"
)

// VersionFeature serves /version/openshift, which OpenShift 3 clients request in addition to
// /version. The response contains OpenShift's version and, after a plus sign, Slipway's version.
func VersionFeature() Feature {
	info := machineryversion.Info{
		Major: "3", Minor: "11+", GitVersion: version.OpenShift(),
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(info)
	})
	return Feature{Hooks: func(Deps) (Hooks, error) {
		return Hooks{Handlers: []Handler{{Path: "/version/openshift", Public: true, Handler: handler}}}, nil
	}}
}
