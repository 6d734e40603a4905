package csi

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

const (
	rounds     = 10  // each with its own driver, cluster and seed
	lifecycles = 100 // lifecycles in each round
	// concurrency is the number of concurrent lifecycles. A driver crash fails all of their calls
	// and delays their retries.
	concurrency        = 20
	faultyRate         = 0.3
	faultsPerLifecycle = 6 // calls that might fail, for each lifecycle
)

// TestRandomFaultsLeakNothing runs a thousand volume lifecycles while the driver delays calls,
// returns errors, hangs, loses responses and crashes, and while the controller is replaced. Some
// claims are deleted early. At the end, both the cluster and the storage must be empty.
func TestRandomFaultsLeakNothing(t *testing.T) {
	for round := range uint64(rounds) {
		seed := round + 1
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, fake.Options{})
			c.driver.SetPlan(fake.Random(seed, faultyRate, lifecycles*faultsPerLifecycle))
			impatient := func(part *Controller) { part.Timeout = 2 * time.Second }
			part := c.start(impatient)
			c.runLifecycles(rand.New(rand.NewPCG(seed, 0)), func() {
				part.Stop()
				part = c.start(impatient)
			})
			c.waitEmpty()
		})
	}
}

// runLifecycles runs all lifecycles. It replaces the controller halfway through.
func (c *cluster) runLifecycles(random *rand.Rand, takeOver func()) {
	turn := make(chan struct{}, concurrency)
	var lives sync.WaitGroup
	for i := range lifecycles {
		turn <- struct{}{}
		name, choice := fmt.Sprint("data-", i), rand.New(rand.NewPCG(random.Uint64(), 0))
		lives.Go(func() {
			defer func() { <-turn }()
			c.randomLifecycle(name, choice)
		})
		if i == lifecycles/2 {
			takeOver()
		}
	}
	lives.Wait()
}

// randomLifecycle runs one volume's lifecycle. At random, it deletes the claim before the volume
// exists, or the attachment before the volume is attached.
func (c *cluster) randomLifecycle(name string, choice *rand.Rand) {
	c.create(c.claim(name))
	if c.pause(choice) {
		c.deleteClaim(name)
		return
	}
	volume := ""
	eventually.True(c.t, name+" is bound", func() bool {
		claim, err := c.claims.PersistentVolumeClaims("team").Get(name)
		if err != nil || claim.Status.Phase != corev1.ClaimBound {
			return false
		}
		volume = claim.Spec.VolumeName
		return true
	})
	c.create(c.attachment(name, volume, "node-1"))
	if !c.pause(choice) {
		eventually.True(c.t, name+" is attached", func() bool {
			va, err := c.attachments.Get(name)
			return err == nil && va.Status.Attached
		})
	}
	c.detach(name)
	if choice.IntN(2) == 0 {
		eventually.True(c.t, name+" is detached", func() bool {
			_, err := c.attachments.Get(name)
			return apierrors.IsNotFound(err)
		})
	}
	c.deleteClaim(name)
}

// pause waits for a few milliseconds with a probability of one third, and reports whether it
// waited.
func (c *cluster) pause(choice *rand.Rand) bool {
	if choice.IntN(3) > 0 {
		return false
	}
	<-time.After(time.Duration(choice.IntN(30)) * time.Millisecond)
	return true
}

// waitEmpty waits until neither the cluster nor the storage contains volumes or attachments.
func (c *cluster) waitEmpty() {
	c.t.Helper()
	ctx, options := context.Background(), metav1.ListOptions{}
	remaining := func() string {
		claims, err := c.client.CoreV1().PersistentVolumeClaims("").List(ctx, options)
		if err != nil {
			return err.Error()
		}
		volumes, err := c.client.CoreV1().PersistentVolumes().List(ctx, options)
		if err != nil {
			return err.Error()
		}
		attachments, err := c.client.StorageV1().VolumeAttachments().List(ctx, options)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("cluster: %d claims, %d PersistentVolumes, %d VolumeAttachments; driver: %d volumes, %d attachments",
			len(claims.Items), len(volumes.Items), len(attachments.Items), len(c.driver.Volumes()), c.driver.Attachments())
	}
	eventually.Equal(c.t, "remaining objects", remaining, "cluster: 0 claims, 0 PersistentVolumes, 0 VolumeAttachments; driver: 0 volumes, 0 attachments")
}
