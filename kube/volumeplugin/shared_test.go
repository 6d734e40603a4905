package volumeplugin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// masters is an API server with a lease and the nodes of two masters.
type masters struct {
	t      *testing.T
	server *apitest.Server
	client kubernetes.Interface
}

func newMasters(t *testing.T) *masters {
	t.Helper()
	m := &masters{t: t, server: apitest.Start(t)}
	m.client = m.clientWith(nil)
	for _, master := range []string{"first", "second"} {
		must[*corev1.Node](t)(m.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: master}}, metav1.CreateOptions{}))
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "lease", Namespace: metav1.NamespaceSystem}}
	must[*coordinationv1.Lease](t)(m.client.CoordinationV1().Leases(metav1.NamespaceSystem).Create(t.Context(), lease, metav1.CreateOptions{}))
	return m
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// clientWith returns a client that calls the given function, if it is not nil, before each request.
func (m *masters) clientWith(before func(*http.Request) error) kubernetes.Interface {
	config := rest.CopyConfig(m.server.Config())
	config.QPS = -1
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if before != nil {
				if err := before(request); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(request)
		})
	}
	return must[kubernetes.Interface](m.t)(kubernetes.NewForConfig(config))
}

// elect makes a master the leader.
func (m *masters) elect(master string) {
	m.t.Helper()
	lease := must[*coordinationv1.Lease](m.t)(m.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(context.Background(), "lease", metav1.GetOptions{}))
	lease.Spec.HolderIdentity = &master
	must[*coordinationv1.Lease](m.t)(m.client.CoordinationV1().Leases(metav1.NamespaceSystem).Update(context.Background(), lease, metav1.UpdateOptions{}))
}

// attachments returns the attachments of a new process on a master.
func (m *masters) attachments(master string, client kubernetes.Interface) *Attachments {
	leader := &controller.LeaseHolder{Client: client, Namespace: metav1.NamespaceSystem, Lease: "lease", Identity: master}
	return &Attachments{Shared: &SharedRecords{Client: client, Master: master, Confirm: leader.Confirm}}
}

func (m *masters) records() []attachment {
	m.t.Helper()
	return must[[]attachment](m.t)((&SharedRecords{Client: m.client}).list(m.t.Context()))
}

// to returns the call that attaches the volume "disk" to a node.
func to(node string) call {
	return call{attachment: attachment{driver: name, node: node, volume: "disk"}, exclusive: true, timeout: time.Minute}
}

// A master is paused before it calls the driver. In the meantime, another master becomes the leader
// and attaches the volume.
func TestPausedMasterDoesNotCallDriver(t *testing.T) {
	for _, pausedBefore := range []string{"GET configmaps", "POST configmaps", "GET leases"} {
		t.Run(pausedBefore, func(t *testing.T) {
			m := newMasters(t)
			m.elect("first")
			paused := false
			first := m.attachments("first", m.clientWith(func(request *http.Request) error {
				verb, resource, _ := strings.Cut(pausedBefore, " ")
				if paused || request.Method != verb || !strings.Contains(request.URL.Path, resource) {
					return nil
				}
				paused = true
				m.elect("second")
				err := m.attachments("second", m.client).attach(to("second"), run(nil))
				if foreign := (foreignCallError{}); pausedBefore == "GET leases" && errors.As(err, &foreign) {
					return nil // the first master might already be calling the driver
				}
				return err
			}))
			err := first.attach(to("first"), func(context.Context) error { t.Error("the driver was called"); return nil })
			if err == nil || !paused {
				t.Errorf("paused %v, error %v", paused, err)
			}
			want := []attachment{to("second").attachment}
			if pausedBefore == "GET leases" {
				want = nil
			}
			if diff := cmp.Diff(want, m.records(), cmp.AllowUnexported(attachment{})); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// A master is paused while the driver is attaching the volume.
func TestNextLeaderWaitsForDriverOfPausedMaster(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	first, second := m.attachments("first", m.client), m.attachments("second", m.client)
	foreign := foreignCallError{}
	err := first.attach(to("first"), func(context.Context) error {
		m.elect("second")
		notCalled := func(context.Context) error { t.Error("the driver was called"); return nil }
		if err := second.attach(to("second"), notCalled); !errors.As(err, &foreign) || foreign.master != "first" {
			t.Errorf("attach: %v", err)
		}
		if _, err := second.detachStale(t.Context(), to("first"), notCalled); !errors.As(err, &foreign) {
			t.Errorf("detach: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first master has attached the volume.
	if elsewhere := (elsewhereError{}); !errors.As(second.attach(to("second"), run(nil)), &elsewhere) {
		t.Errorf("after the call: %v", err)
	}
	if complete, err := second.detachStale(t.Context(), to("first"), run(nil)); !complete || err != nil {
		t.Errorf("detach after the call: complete %v, error %v", complete, err)
	}
	if err := second.attach(to("second"), run(nil)); err != nil {
		t.Error(err)
	}
}

// The master that is calling the driver does not respond.
func TestNextLeaderContinuesWithoutLostMaster(t *testing.T) {
	for _, test := range []struct {
		name string
		lose func(*masters, *Attachments)
	}{
		{"after the driver's timeout", func(_ *masters, second *Attachments) {
			for key, seen := range second.Shared.foreignCalls {
				seen.since = time.Now().Add(-2*time.Minute - time.Second)
				second.Shared.foreignCalls[key] = seen
			}
		}},
		{"when the node is deleted", func(m *masters, _ *Attachments) {
			if err := m.client.CoreV1().Nodes().Delete(m.t.Context(), "first", metav1.DeleteOptions{}); err != nil {
				m.t.Fatal(err)
			}
		}},
		{"when the node is out of service", func(m *masters, _ *Attachments) {
			node := must[*corev1.Node](m.t)(m.client.CoreV1().Nodes().Get(m.t.Context(), "first", metav1.GetOptions{}))
			node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			must[*corev1.Node](m.t)(m.client.CoreV1().Nodes().Update(m.t.Context(), node, metav1.UpdateOptions{}))
		}},
		{"when the master has restarted", func(m *masters, _ *Attachments) {
			componenttest.Run(m.t, (&EndedCalls{Records: m.attachments("first", m.client).Shared}).Run)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMasters(t)
			m.elect("first")
			second := m.attachments("second", m.client)
			release := func() error {
				_, err := second.detachStale(t.Context(), to("first"), run(nil))
				return err
			}
			err := m.attachments("first", m.client).attach(to("first"), func(context.Context) error {
				m.elect("second")
				if foreign := (foreignCallError{}); !errors.As(release(), &foreign) {
					t.Error("the next leader does not wait for the call")
				}
				test.lose(m, second)
				return errors.Join(release(), second.attach(to("second"), run(nil)))
			})
			if err == nil || !strings.Contains(err.Error(), "record end of driver call") {
				t.Errorf("the first master does not notice that the volume was taken over: %v", err)
			}
			if diff := cmp.Diff([]attachment{to("second").attachment}, m.records(), cmp.AllowUnexported(attachment{})); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// A master is paused before or while it expands a volume. In the meantime, another master becomes
// the leader.
func TestPausedMasterDoesNotExpandVolume(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	first, second := m.attachments("first", m.client), m.attachments("second", m.client)
	expansion := to("")
	notCalled := func(context.Context) error { t.Error("the driver was called"); return nil }
	if err := first.attach(to("first"), run(nil)); err != nil {
		t.Fatal(err)
	}
	err := first.expand(expansion, func(context.Context) error {
		m.elect("second")
		if foreign := (foreignCallError{}); !errors.As(second.expand(expansion, notCalled), &foreign) || foreign.master != "first" {
			t.Errorf("the next leader does not wait for the call: %v", foreign)
		}
		return flexvolume.ErrNotSupported
	})
	if !errors.Is(err, flexvolume.ErrNotSupported) {
		t.Error(err)
	}
	if err := first.expand(expansion, notCalled); err == nil || !strings.Contains(err.Error(), "confirm leadership") {
		t.Errorf("the former leader: %v", err)
	}
	if err := second.expand(expansion, run(nil)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]attachment{to("first").attachment}, m.records(), cmp.AllowUnexported(attachment{})); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}

	c := start(t, nil, "", `expandvolume) echo '{"status":"Success","volumeNewSize":2}' ;;`)
	c.calls()
	spec := pv(nil)
	plugin := must[volume.ExpandableVolumePlugin](t)(c.manager.FindExpandablePluginBySpec(spec))
	c.attachments.Dir, c.attachments.Shared = "", first.Shared
	if _, err := plugin.ExpandVolumeDevice(spec, resource.MustParse("2"), resource.MustParse("1")); err == nil {
		t.Error("the plugin of the former leader expanded the volume")
	}
	c.attachments.Shared = second.Shared
	must[resource.Quantity](t)(plugin.ExpandVolumeDevice(spec, resource.MustParse("2"), resource.MustParse("1")))
	if calls := c.calls(); len(calls) != 2 || !strings.HasPrefix(calls[1], "expandvolume ") {
		t.Errorf("calls: %q", calls)
	}
}

func TestRecordOfOneVolumeDoesNotDelayOthers(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	other := to("first")
	other.volume = "other"
	blocked, attached := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	attachments := m.attachments("first", m.clientWith(func(request *http.Request) error {
		if request.Method == http.MethodPost && first.CompareAndSwap(false, true) {
			close(blocked)
			<-attached
		}
		return nil
	}))
	done := make(chan error)
	go func() { done <- attachments.attach(to("first"), run(nil)) }()
	<-blocked
	if err := attachments.attach(other, run(nil)); err != nil {
		t.Error(err)
	}
	close(attached)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// If a call exceeds its timeout, the driver's processes might still be running, so the next call
// does not start.
func TestCallThatTimesOutStaysRecorded(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	first := m.attachments("first", m.client)
	for _, kind := range []flexvolume.Kind{flexvolume.KindTimeout, flexvolume.KindBusy} {
		failure := &flexvolume.CallError{Kind: kind}
		if err := first.attach(to("first"), run(failure)); !errors.Is(err, failure) {
			t.Fatal(err)
		}
	}
	m.elect("second")
	_, err := m.attachments("second", m.client).detachStale(t.Context(), to("first"), run(nil))
	if foreign := (foreignCallError{}); !errors.As(err, &foreign) {
		t.Errorf("another master: %v", err)
	}
	m.elect("first")
	if err := first.detach(to("first"), run(nil)); err != nil || len(m.records()) > 0 {
		t.Errorf("the same master: error %v, records %v", err, m.records())
	}
}

// TestVolumeOfLostMasterIsDetached loses the master that has attached a volume.
func TestVolumeOfLostMasterIsDetached(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	a := to("first")
	a.volume = "disk~7"
	for range 2 { // upstream retries a failed attach
		if err := m.attachments("first", m.client).attach(a, run(nil)); err != nil {
			t.Fatal(err)
		}
	}
	m.elect("second")
	failures := 0
	client := m.clientWith(func(request *http.Request) error {
		if failures == 0 && strings.HasSuffix(request.URL.Path, "configmaps") {
			failures++
			return errors.New("no leader")
		}
		return nil
	})
	c := start(t, nil, "", "")
	c.calls()
	second := m.attachments("second", client)
	componenttest.Run(t, (&DetachRecovery{Client: client, Registry: c.registry, Attachments: second}).Run)
	if diff := cmp.Diff([]string{"detach disk~7 first"}, c.calls()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if remaining := m.records(); len(remaining) > 0 {
		t.Errorf("remaining: %v", remaining)
	}
	if err := errors.Join(second.attach(a, run(nil)), second.detach(a, run(nil)), second.detach(a, run(nil))); err != nil {
		t.Errorf("attach and detach again: %v", err)
	}
}

// An earlier leader has removed the volume from the first node's status, but has not detached it.
func TestLostAttachmentIsDetachedBeforeNextAttach(t *testing.T) {
	m := newMasters(t)
	m.elect("first")
	a := to("first")
	a.volume = "disk~7"
	if err := m.attachments("first", m.client).attach(a, run(nil)); err != nil {
		t.Fatal(err)
	}
	m.elect("second")
	c := start(t, nil, "", "")
	c.calls()
	spec := pv(nil)
	spec.PersistentVolume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if util.IsMultiAttachAllowed(spec) {
		t.Fatal("the volume may be attached to several nodes")
	}
	c.attachments.Dir, c.attachments.Shared = "", m.attachments("second", m.client).Shared
	attacher := must[volume.Attacher](t)(must[volume.AttachableVolumePlugin](t)(c.manager.FindAttachablePluginBySpec(spec)).NewAttacher())
	must[*corev1.Node](t)(c.objects.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Status:     corev1.NodeStatus{VolumesInUse: []corev1.UniqueVolumeName{name + "/disk~7"}},
	}, metav1.CreateOptions{}))
	if _, err := attacher.Attach(spec, "second"); err == nil {
		t.Error("the volume was attached while another node uses it")
	}
	must[*corev1.Node](t)(c.objects.CoreV1().Nodes().UpdateStatus(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, metav1.UpdateOptions{}))
	must[string](t)(attacher.Attach(spec, "second"))
	var calls []string
	for _, call := range c.calls() {
		operation, _, _ := strings.Cut(call, " ")
		calls = append(calls, operation)
	}
	if diff := cmp.Diff([]string{"getvolumename", "detach", "attach"}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if records := m.records(); len(records) != 1 || records[0].node != "second" {
		t.Errorf("records: %v", records)
	}
}
