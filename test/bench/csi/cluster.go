package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/storage/csi/fake"
	"github.com/slipway-platform/slipway/test/bench/host"
)

// program is a program that serves CSI drivers: slipway or the external attacher.
type program struct {
	path      string
	arguments func(kubeconfig string, sockets []string) []string
}

// cluster contains an in-memory API server, CSI drivers, and the program that serves the drivers.
type cluster struct {
	api     *apitest.Server
	client  kubernetes.Interface
	drivers []*fake.Driver
	process *exec.Cmd
	end     []func()
}

// start creates a cluster and starts the program in it.
func (p program) start(ctx context.Context, drivers, volumes int) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		return c, err
	}
	c.end = append(c.end, func() { _ = os.RemoveAll(dir) })
	var stop func()
	c.api, stop = apitest.Serve()
	c.api.WriteTime = writeLatency
	c.end = append(c.end, stop)
	if c.client, err = kubernetes.NewForConfig(c.api.Config()); err != nil {
		return c, err
	}
	sockets, err := c.serveDrivers(dir, drivers)
	if err != nil {
		return c, err
	}
	if err := c.fill(ctx, volumes); err != nil {
		return c, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := host.WriteKubeconfig(kubeconfig, c.api.Config()); err != nil {
		return c, err
	}
	c.process = exec.CommandContext(ctx, p.path, p.arguments(kubeconfig, sockets)...)
	if err := c.process.Start(); err != nil {
		return c, err
	}
	return c, nil
}

// stop stops the cluster's components in the reverse order of their start.
func (c *cluster) stop() {
	if c.process != nil && c.process.Process != nil {
		_ = c.process.Process.Signal(syscall.SIGTERM)
		_ = c.process.Wait() // Ignore the error, because Wait returns an error after a signal.
	}
	for i := len(c.end) - 1; i >= 0; i-- {
		c.end[i]()
	}
}

func (c *cluster) serveDrivers(dir string, count int) (sockets []string, err error) {
	for i := range count {
		d := fake.New(fake.Options{Name: driverName(i), Plan: func(method string, _ int) fake.Fault {
			if strings.HasSuffix(method, "Volume") {
				return fake.Fault{Delay: callLatency}
			}
			return fake.Fault{}
		}})
		socket := filepath.Join(dir, fmt.Sprintf("%d.sock", i))
		server, err := d.Listen(socket)
		if err != nil {
			return nil, err
		}
		c.end = append(c.end, server.Stop)
		c.drivers, sockets = append(c.drivers, d), append(sockets, socket)
	}
	return sockets, nil
}

func driverName(i int) string { return fmt.Sprintf("disk-%d.example.com", i) }

// fill creates a node that has the drivers, a storage class, and the drivers' attached volumes.
func (c *cluster) fill(ctx context.Context, volumes int) error {
	node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	for i := range c.drivers {
		node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: driverName(i), NodeID: "node"})
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driverName(0)}
	_, nodeErr := c.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: node.ObjectMeta}, metav1.CreateOptions{})
	_, csiNodeErr := c.client.StorageV1().CSINodes().Create(ctx, node, metav1.CreateOptions{})
	_, classErr := c.client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
	if err := errors.Join(nodeErr, csiNodeErr, classErr); err != nil {
		return err
	}
	return host.Each(ctx, volumes, func(i int) error {
		driver := i % len(c.drivers)
		name := fmt.Sprintf("old-%d", i)
		handle, err := c.newVolume(ctx, name, driver)
		if err != nil {
			return err
		}
		_, err = c.drivers[driver].ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: handle, NodeId: "node", VolumeCapability: &csi.VolumeCapability{}})
		if err != nil {
			return err
		}
		va := attachment(name, driverName(driver))
		va.Annotations, va.Status.Attached = map[string]string{"csi.alpha.kubernetes.io/node-id": "node"}, true
		_, err = c.client.StorageV1().VolumeAttachments().Create(ctx, va, metav1.CreateOptions{})
		return err
	})
}

func (c *cluster) makeVolume(ctx context.Context, name, driver, handle string) error {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	_, err := c.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}},
		},
	}, metav1.CreateOptions{})
	return err
}

func attachment(volume, driver string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

// until waits until holds returns true.
func (c *cluster) until(ctx context.Context, description string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for !holds() {
		if err := host.Pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("wait until %s: %w", description, err)
		}
	}
	return nil
}
