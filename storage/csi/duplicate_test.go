package csi

import (
	"path/filepath"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

func TestDriverWithDuplicateNameIsServedWhenNameIsReleased(t *testing.T) {
	c := newCluster(t, fake.Options{})
	second := filepath.Join(filepath.Dir(c.socket), "second.sock")
	c.start(func(controller *Controller) {
		controller.Drivers = append(controller.Drivers, "unix://"+second)
		controller.Object = &storagev1.CSIDriverSpec{}
	})
	isServed := func(name string) func() bool {
		return func() bool {
			_, err := c.client.StorageV1().CSIDrivers().Get(t.Context(), name, metav1.GetOptions{})
			return err == nil
		}
	}
	eventually.True(t, "the first driver is served", isServed(fake.Name))
	duplicate := fake.New(fake.Options{})
	server, err := duplicate.Listen(second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)

	c.server.Stop() // Simulate an upgrade that renames the first driver.
	renamed, err := fake.New(fake.Options{Name: "renamed.example.com"}).Listen(c.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(renamed.Stop)
	eventually.True(t, "the renamed driver is served", isServed("renamed.example.com"))

	c.create(c.claim("data"))
	c.waitBound("data")
	if len(duplicate.Volumes()) != 1 {
		t.Errorf("the duplicate has the volumes %v", duplicate.Volumes())
	}
}
