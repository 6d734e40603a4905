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
	rounds       = 10  // with a driver, a cluster and a seed each
	schedules    = 100 // lives of volumes in each round
	together     = 20  // at once: a driver that crashes fails the calls of all, each of which then waits longer for its next try
	faultyRate   = 0.3
	faultsPerOne = 6 // calls that may go wrong, for each life
)

// A thousand volumes live while their driver fails, delays, answers nothing though it has acted, crashes, and is sometimes served by another instance. Claims are
// deleted at any time. In the end nothing is left on either side.
func TestNothingIsLeakedWhateverGoesWrong(t *testing.T) {
	for round := range uint64(rounds) {
		seed := round + 1
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, fake.Options{})
			c.driver.SetPlan(fake.Random(seed, faultyRate, schedules*faultsPerOne))
			impatient := func(part *Controller) { part.Timeout = 2 * time.Second }
			part := c.start(impatient)
			c.live(rand.New(rand.NewPCG(seed, 0)), func() {
				part.Stop()
				part = c.start(impatient)
			})
			c.empty()
		})
	}
}

// live runs all lives, and lets another instance take over in the middle of them.
func (c *cluster) live(random *rand.Rand, takeOver func()) {
	turn := make(chan struct{}, together)
	var lives sync.WaitGroup
	for i := range schedules {
		turn <- struct{}{}
		name, choice := fmt.Sprint("data-", i), rand.New(rand.NewPCG(random.Uint64(), 0))
		lives.Go(func() {
			defer func() { <-turn }()
			c.randomLife(name, choice)
		})
		if i == schedules/2 {
			takeOver()
		}
	}
	lives.Wait()
}

// randomLife is one volume's: its claim may be deleted before the volume is there, and its attachment before it is attached.
func (c *cluster) randomLife(name string, choice *rand.Rand) {
	c.create(c.claim(name))
	if c.pause(choice) {
		c.deleteClaim(name)
		return
	}
	volume := ""
	eventually.True(c.t, name+" is bound", func() bool {
		claim, err := c.seenClaims.PersistentVolumeClaims("team").Get(name)
		if err != nil || claim.Status.Phase != corev1.ClaimBound {
			return false
		}
		volume = claim.Spec.VolumeName
		return true
	})
	c.create(c.attachment(name, volume, "node-1"))
	if !c.pause(choice) {
		eventually.True(c.t, name+" is attached", func() bool {
			va, err := c.seenAttachments.Get(name)
			return err == nil && va.Status.Attached
		})
	}
	c.detach(name)
	if choice.IntN(2) == 0 {
		eventually.True(c.t, name+" is detached", func() bool {
			_, err := c.seenAttachments.Get(name)
			return apierrors.IsNotFound(err)
		})
	}
	c.deleteClaim(name)
}

// pause tells, in a third of the cases, not to wait any longer than it has, for a few milliseconds.
func (c *cluster) pause(choice *rand.Rand) bool {
	if choice.IntN(3) > 0 {
		return false
	}
	<-time.After(time.Duration(choice.IntN(30)) * time.Millisecond)
	return true
}

// empty waits until both sides have nothing left.
func (c *cluster) empty() {
	c.t.Helper()
	ctx, options := context.Background(), metav1.ListOptions{}
	left := func() string {
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
	eventually.Equal(c.t, "what is left", left, "cluster: 0 claims, 0 PersistentVolumes, 0 VolumeAttachments; driver: 0 volumes, 0 attachments")
}
