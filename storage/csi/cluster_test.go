package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/attach"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
	"github.com/slipway-platform/slipway/storage/csi/provision"
)

// cluster is an API server with a driver and a simulation of the upstream volume controllers, which
// request, bind and release volumes.
type cluster struct {
	t      testing.TB
	api    *apitest.Server
	client kubernetes.Interface
	driver *fake.Driver
	socket string
	server *fake.Server

	// Caches of the cluster's objects. Without caches, polling by concurrent lifecycles would
	// overload the API server.
	claims      corelisters.PersistentVolumeClaimLister
	attachments storagelisters.VolumeAttachmentLister
}

// quick is the initial retry backoff.
const quick = 5 * time.Millisecond

// newCluster creates a cluster that has one node, "node-1", which runs the driver, and the
// StorageClass "fast".
func newCluster(t testing.TB, options fake.Options) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // t.TempDir is too long for a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &cluster{t: t, api: apitest.Start(t), driver: fake.New(options), socket: filepath.Join(dir, "csi.sock")}
	if c.client, err = kubernetes.NewForConfig(c.api.Config()); err != nil {
		t.Fatal(err)
	}
	if c.server, err = c.driver.Listen(c.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.Stop)
	c.addNode("node-1", "node", options.Topology)
	c.create(c.class("fast"))
	c.bind()
	return c
}

func (c *cluster) class(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: fake.Name, Parameters: map[string]string{"type": "ssd"}}
}

func (c *cluster) addNode(name, id string, labels map[string]string) {
	c.t.Helper()
	var keys []string
	for key := range labels {
		keys = append(keys, key)
	}
	c.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	c.create(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: fake.Name, NodeID: id, TopologyKeys: keys}},
	}})
}

// create creates an object. It supports the kinds that the tests need.
func (c *cluster) create(object any) {
	c.t.Helper()
	ctx, options := context.Background(), metav1.CreateOptions{}
	var err error
	switch o := object.(type) {
	case *corev1.Node:
		_, err = c.client.CoreV1().Nodes().Create(ctx, o, options)
	case *corev1.Secret:
		_, err = c.client.CoreV1().Secrets(o.Namespace).Create(ctx, o, options)
	case *corev1.PersistentVolumeClaim:
		_, err = c.client.CoreV1().PersistentVolumeClaims(o.Namespace).Create(ctx, o, options)
	case *corev1.PersistentVolume:
		_, err = c.client.CoreV1().PersistentVolumes().Create(ctx, o, options)
	case *storagev1.CSINode:
		_, err = c.client.StorageV1().CSINodes().Create(ctx, o, options)
	case *storagev1.CSIDriver:
		_, err = c.client.StorageV1().CSIDrivers().Create(ctx, o, options)
	case *storagev1.StorageClass:
		_, err = c.client.StorageV1().StorageClasses().Create(ctx, o, options)
	case *storagev1.VolumeAttachment:
		_, err = c.client.StorageV1().VolumeAttachments().Create(ctx, o, options)
	default:
		err = fmt.Errorf("unsupported kind: %T", object)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// start starts the controller with a short retry backoff. The change functions can modify the
// controller before it runs.
func (c *cluster) start(change ...func(*Controller)) *componenttest.Component {
	c.t.Helper()
	return componenttest.Run(c.t, c.controller(change...).Run)
}

func (c *cluster) controller(change ...func(*Controller)) *Controller {
	controller := &Controller{
		Config: c.api.Config(), Drivers: []string{"unix://" + c.socket}, Timeout: 10 * time.Second, Metrics: metrics.New(),
		Dial: driver.Options{Retry: 20 * quick},
		Features: Features(Options{
			Attach:    attach.Options{Retry: quick, RetryMax: 20 * quick, VerifyInterval: 4 * quick, FinalizerDelay: time.Hour},
			Provision: provision.Options{Retry: quick, RetryMax: 20 * quick},
		}),
	}
	for _, f := range change {
		f(controller)
	}
	return controller
}

func (c *cluster) claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: ptr.To("fast"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// waitBound waits until a claim is bound and returns its PersistentVolume.
func (c *cluster) waitBound(name string) *corev1.PersistentVolume {
	c.t.Helper()
	var claim *corev1.PersistentVolumeClaim
	eventually.True(c.t, "claim "+name+" is bound", func() bool {
		claim = c.getClaim(name)
		return claim != nil && claim.Status.Phase == corev1.ClaimBound
	})
	return c.getPV(claim.Spec.VolumeName)
}

func (c *cluster) getClaim(name string) *corev1.PersistentVolumeClaim {
	claim, err := c.client.CoreV1().PersistentVolumeClaims("team").Get(context.Background(), name, metav1.GetOptions{})
	return must(c.t, claim, err)
}

func (c *cluster) getPV(name string) *corev1.PersistentVolume {
	pv, err := c.client.CoreV1().PersistentVolumes().Get(context.Background(), name, metav1.GetOptions{})
	return must(c.t, pv, err)
}

func (c *cluster) getVA(name string) *storagev1.VolumeAttachment {
	va, err := c.client.StorageV1().VolumeAttachments().Get(context.Background(), name, metav1.GetOptions{})
	return must(c.t, va, err)
}

// must returns object, or nil if err is NotFound. Any other error fails the test.
func must[T any](t testing.TB, object *T, err error) *T {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Error(err)
	}
	return object
}

func (c *cluster) deleteClaim(name string) {
	err := c.client.CoreV1().PersistentVolumeClaims("team").Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Error(err)
	}
}

func (c *cluster) attachment(name, volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: fake.Name, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}
}

func (c *cluster) detach(name string) {
	err := c.client.StorageV1().VolumeAttachments().Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Error(err)
	}
}

// patchPV patches a PersistentVolume, as an administrator would.
func (c *cluster) patchPV(name, patch string, subresources ...string) {
	c.t.Helper()
	if _, err := c.client.CoreV1().PersistentVolumes().Patch(context.Background(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		c.t.Fatal(err)
	}
}

// hasEvent reports whether an object has an event with the given reason.
func (c *cluster) hasEvent(name, reason string) bool {
	events, err := c.client.CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		c.t.Error(err)
		return false
	}
	for _, event := range events.Items {
		if event.InvolvedObject.Name == name && event.Reason == reason {
			return true
		}
	}
	return false
}

// bind simulates the controller manager's volume binder, with its own clients.
func (c *cluster) bind() {
	b := &binder{client: c.client}
	factory := informers.NewSharedInformerFactory(c.client, 0)
	b.claims = factory.Core().V1().PersistentVolumeClaims()
	b.volumes = factory.Core().V1().PersistentVolumes()
	c.claims, c.attachments = b.claims.Lister(), factory.Storage().V1().VolumeAttachments().Lister()
	loop := func(name string, watch controller.Watch, reconcile func(context.Context, controller.Key) error) controller.Controller {
		return controller.Controller{Name: name, Watches: []controller.Watch{watch}, Reconcile: reconcile, MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond}
	}
	set := controller.Manager{
		loop("ask", controller.Watch{Informer: b.claims.Informer()}, b.request),
		loop("bind", controller.Watch{Informer: b.volumes.Informer()}, b.bind),
		loop("release", controller.Watch{Informer: b.claims.Informer(), Keys: claimPV}, b.bind),
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = set.Run(ctx, func() {}) })
	factory.StartWithContext(ctx)
	c.t.Cleanup(func() { cancel(); running.Wait(); factory.Shutdown() })
}

func claimPV(object any) []controller.Key {
	return []controller.Key{{Name: "pvc-" + string(object.(*corev1.PersistentVolumeClaim).UID)}}
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
