package platform

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/slipway-platform/slipway/storage/csi"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
)

func csiControllerCommand() *cobra.Command {
	var (
		flags   csiFlags
		options csi.Options
		retry   csiRetry
		object  csiObject
		elect   bool
		lease   csi.Lease
	)
	command := &cobra.Command{
		Use:   "controller --csi-address SOCKET...",
		Short: "Provision, attach, resize, modify, snapshot and what else a driver's controller side needs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			retry.apply(&options)
			part := &csi.Controller{Drivers: flags.addresses, Timeout: flags.timeout, Features: csi.Features(options), Metrics: metrics.New()}
			if elect {
				part.Lease = &lease
			}
			var err error
			if part.Object, err = object.spec(options); err != nil {
				return err
			}
			if part.Config, err = flags.config(); err != nil {
				return err
			}
			parts, closeAll, err := flags.parts(part.Metrics)
			if err != nil {
				return err
			}
			defer closeAll()
			return runForeground(cmd.Context(), append(parts, Part{Component: part}))
		},
	}
	set := command.Flags()
	flags.add(set)
	hostname, _ := os.Hostname()
	set.BoolVar(&elect, "leader-election", false, "let one of several instances act, elected by a Lease")
	set.StringVar(&lease.Namespace, "leader-election-namespace", "kube-system", "namespace of the Lease")
	set.StringVar(&lease.Name, "leader-election-lease", "slipway-csi", "name of the Lease; instances that serve other drivers need another one")
	set.StringVar(&lease.Identity, "leader-election-identity", hostname, "name of this instance")
	addCSIOptions(set, &options)
	retry.add(set)
	object.add(set)
	return command
}

// addCSIOptions are the flags of each concern. What a driver cannot do is not tried, so none of them has to be given.
func addCSIOptions(set *pflag.FlagSet, o *csi.Options) {
	set.IntVar(&o.Attach.Workers, "attach-workers", 10, "attachments, and as many detachments, that a driver is asked for at once")
	set.DurationVar(&o.Attach.VerifyInterval, "attach-verify-interval", time.Minute, "how often attachments are compared with what the driver lists")
	set.DurationVar(&o.Attach.FinalizerDelay, "attach-linger", 5*time.Minute, "how long a PersistentVolume keeps its finalizer after its last attachment")
	set.IntVar(&o.Provision.Workers, "provision-workers", 100, "volumes that a driver is asked to make, and as many to delete, at once")
	set.StringVar(&o.Provision.FSType, "default-fstype", "", "file system of volumes whose StorageClass names none; the driver's choice by default")
	set.BoolVar(&o.Provision.ExtraMetadata, "extra-create-metadata", false, "tell the driver the names of claim and PersistentVolume")
	set.BoolVar(&o.Provision.Strict, "strict-topology", false, "tell the driver no other topology than that of the selected node")
	set.BoolVar(&o.Provision.NoSpread, "no-statefulset-spread", false, "do not spread the volumes of a StatefulSet over the topology")
	set.StringVar(&o.Capacity.Namespace, "capacity-namespace", "kube-system", "namespace for CSIStorageCapacity objects; empty does not track capacity")
	set.DurationVar(&o.Capacity.Interval, "capacity-interval", time.Minute, "how often the driver is asked for its capacity")
	set.IntVar(&o.Snapshot.Workers, "snapshot-workers", 10, "snapshots that are worked on at once")
	set.DurationVar(&o.Snapshot.Poll, "snapshot-poll-interval", time.Second, "when a snapshot that is not ready is first looked at again")
	set.IntVar(&o.Resize.Workers, "resize-workers", 10, "volumes that are made larger at once")
	set.IntVar(&o.Modify.Workers, "modify-workers", 10, "volumes that get another VolumeAttributesClass at once")
	set.DurationVar(&o.Health.Interval, "health-interval", time.Minute, "how often the driver is asked which volumes are ill")
}

// csiRetry is when an operation that has failed is tried again, the same for each concern.
type csiRetry struct{ first, longest time.Duration }

func (r *csiRetry) add(set *pflag.FlagSet) {
	set.DurationVar(&r.first, "retry-interval-start", time.Second, "delay after the first error of an operation, which doubles with each further one")
	set.DurationVar(&r.longest, "retry-interval-max", 5*time.Minute, "the longest of these delays")
}

func (r *csiRetry) apply(o *csi.Options) {
	o.Attach.Retry, o.Attach.RetryMax = r.first, r.longest
	o.Provision.Retry, o.Provision.RetryMax = r.first, r.longest
	o.Resize.Retry, o.Resize.RetryMax = r.first, r.longest
	o.Modify.Retry, o.Modify.RetryMax = r.first, r.longest
	o.Snapshot.Retry = r.first
}

// csiObject is what the CSIDriver object says that no driver can tell.
type csiObject struct {
	keep       bool
	podInfo    bool
	fsGroup    string
	lifecycles []string
}

func (c *csiObject) add(set *pflag.FlagSet) {
	set.BoolVar(&c.keep, "driver-object", true, "keep the CSIDriver object of a driver, unless somebody else has made one")
	set.BoolVar(&c.podInfo, "driver-pod-info", false, "tell the driver which pod a volume is mounted for")
	set.StringVar(&c.fsGroup, "driver-fs-group-policy", string(storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy), "whether a pod's fsGroup becomes the owner of its files: File, None or ReadWriteOnceWithFSType")
	set.StringSliceVar(&c.lifecycles, "driver-lifecycle-modes", []string{string(storagev1.VolumeLifecyclePersistent)}, "kinds of volumes: Persistent, Ephemeral")
}

// spec is nil when no object is kept. Without objects of its capacity a driver must not be said to have it tracked: no pod would be scheduled.
func (c *csiObject) spec(o csi.Options) (*storagev1.CSIDriverSpec, error) {
	if !c.keep {
		return nil, nil
	}
	policy := storagev1.FSGroupPolicy(c.fsGroup)
	known := []storagev1.FSGroupPolicy{storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy}
	if !slices.Contains(known, policy) {
		return nil, fmt.Errorf("use --driver-fs-group-policy %q: it is none of %q", policy, known)
	}
	spec := &storagev1.CSIDriverSpec{PodInfoOnMount: &c.podInfo, FSGroupPolicy: &policy}
	for _, mode := range c.lifecycles {
		switch mode := storagev1.VolumeLifecycleMode(mode); mode {
		case storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral:
			spec.VolumeLifecycleModes = append(spec.VolumeLifecycleModes, mode)
		default:
			return nil, fmt.Errorf("use --driver-lifecycle-modes %q: it is neither Persistent nor Ephemeral", mode)
		}
	}
	if o.Capacity.Namespace == "" {
		spec.StorageCapacity = new(bool)
	}
	return spec, nil
}
