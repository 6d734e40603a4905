package catalogcontroller

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// change changes an instance's spec as the API server would store it.
func (f *fixture) change(name string, change func(*v1beta1.ServiceInstanceSpec)) *v1beta1.ServiceInstance {
	f.t.Helper()
	instance := f.instance(name)
	change(&instance.Spec)
	instance.Generation++
	updated, err := f.client.Instances(namespace).Update(f.t.Context(), instance, metav1.UpdateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return updated
}

// update changes an instance's spec, and waits until the instance is ready again.
func (f *fixture) update(name string, change func(*v1beta1.ServiceInstanceSpec)) {
	f.t.Helper()
	instance := f.change(name, change)
	eventually.Equal(f.t, "reconciled generation", func() int64 { return f.instance(name).Status.ReconciledGeneration }, instance.Generation)
	f.waitInstance(name, "Ready")
}

func TestInstanceGetsNewVersionOnRequest(t *testing.T) {
	f := newFixture(t, time.Minute)
	var updates []osb.Update
	f.broker.Set(func() {
		f.broker.Refuse = func(_ http.ResponseWriter, r *http.Request) bool {
			content, err := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(content))
			var body osb.Update
			if err == nil && r.Method == http.MethodPatch && json.Unmarshal(content, &body) == nil {
				updates = append(updates, body)
			}
			return false
		}
	})
	version := func(name string) string { return recordedMaintenance(f.instance(name).Status.ExternalProperties) }
	f.broker.SetVersion("1.0.0")
	f.register()
	f.order("first", "db")
	f.waitInstance("first", "Ready")
	if got := version("first"); got != "1.0.0" {
		t.Errorf("the instance has version %q, want 1.0.0", got)
	}
	// The broker rejects the version in the fetched catalog. The controller then fetches the
	// catalog again.
	f.broker.SetVersion("2.0.0")
	f.order("second", "db")
	f.waitInstance("second", "Ready")
	if got := version("second"); got != "2.0.0" {
		t.Errorf("after a conflict, the new instance has version %q, want 2.0.0", got)
	}
	f.update("first", func(spec *v1beta1.ServiceInstanceSpec) {
		spec.Parameters = &runtime.RawExtension{Raw: []byte(`{"size": 2}`)}
	})
	if got := version("first"); got != "1.0.0" {
		t.Errorf("after a change of parameters, the instance has version %q, want 1.0.0", got)
	}
	f.update("first", func(spec *v1beta1.ServiceInstanceSpec) { spec.UpdateRequests++ })
	if got := version("first"); got != "2.0.0" {
		t.Errorf("after a request for an update, the instance has version %q, want 2.0.0", got)
	}
	f.broker.Set(func() {
		if len(updates) != 2 || updates[0].MaintenanceInfo != nil || updates[0].PreviousValues.MaintenanceInfo.Version != "1.0.0" ||
			updates[1].MaintenanceInfo == nil || updates[1].MaintenanceInfo.Version != "2.0.0" || updates[1].PreviousValues.MaintenanceInfo.Version != "1.0.0" {
			t.Errorf("the broker received the updates %+v", updates)
		}
	})
}

func TestDashboardOfAsynchronousInstanceIsRead(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	f.order("cloudy", "cloud")
	f.waitInstance("cloudy", "Ready")
	if got := f.instance("cloudy").Status.DashboardURL; got == nil || *got != "http://dashboard.example.com/id-cloudy" {
		t.Errorf("the dashboard is %v", got)
	}
}
