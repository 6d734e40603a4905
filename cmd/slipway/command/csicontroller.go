package command

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
		Short: "Provision, attach, resize, modify and snapshot volumes: the controller side of a driver",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			retry.apply(&options)
			controller := &csi.Controller{
				Drivers: flags.addresses, Timeout: flags.timeout, Features: csi.Features(options), Metrics: metrics.New(),
			}
			if elect {
				controller.Lease = &lease
			}
			var err error
			if controller.Object, err = object.spec(options); err != nil {
				return err
			}
			if controller.Config, err = clusterConfig(flags.kubeconfig); err != nil {
				return err
			}
			components, closeAll, err := flags.httpComponents(controller.Metrics)
			if err != nil {
				return err
			}
			defer closeAll()
			return runForeground(cmd.Context(), append(components, controller)...)
		},
	}
	set := command.Flags()
	flags.add(set)
	hostname, _ := os.Hostname()
	set.BoolVar(&elect, "leader-election", false, "elect a leader with a Lease; if several instances run, only the leader is active")
	set.StringVar(&lease.Namespace, "leader-election-namespace", "kube-system", "namespace of the Lease")
	set.StringVar(&lease.Name, "leader-election-lease", "slipway-csi", "name of the Lease; instances that serve other drivers need a different name")
	set.StringVar(&lease.Identity, "leader-election-identity", hostname, "name of this instance")
	addCSIOptions(set, &options)
	retry.add(set)
	object.add(set)
	return command
}

// addCSIOptions adds the flags of all features. No flag is required. `slipway csi controller` uses
// only the features that the driver supports.
func addCSIOptions(set *pflag.FlagSet, o *csi.Options) {
	set.IntVar(&o.Attach.Workers, "attach-workers", 10, "maximum number of volumes that are attached concurrently, and of volumes that are detached concurrently")
	set.DurationVar(&o.Attach.VerifyInterval, "attach-verify-interval", time.Minute, "time between comparisons of attachments with the volumes that the driver lists as attached")
	set.DurationVar(&o.Attach.FinalizerDelay, "attach-linger", 5*time.Minute, "how long a PersistentVolume keeps its finalizer after its last detachment")
	set.IntVar(&o.Provision.Workers, "provision-workers", 100, "maximum number of volumes that are created concurrently, and of volumes that are deleted concurrently")
	set.StringVar(&o.Provision.FSType, "default-fstype", "", "file system for StorageClasses that specify none; by default, the driver chooses one")
	set.BoolVar(&o.Provision.ExtraMetadata, "extra-create-metadata", false, "pass the names of the claim and the PersistentVolume to the driver")
	set.BoolVar(&o.Provision.Strict, "strict-topology", false, "pass only the topology of the selected node to the driver")
	set.BoolVar(&o.Provision.NoSpread, "no-statefulset-spread", false, "do not spread a StatefulSet's volumes across the topology")
	set.StringVar(&o.Capacity.Namespace, "capacity-namespace", "kube-system", "namespace for CSIStorageCapacity objects; if empty, capacity is not tracked")
	set.DurationVar(&o.Capacity.Interval, "capacity-interval", time.Minute, "time between requests for the driver's capacity")
	set.IntVar(&o.Snapshot.Workers, "snapshot-workers", 10, "maximum number of snapshots that are processed concurrently")
	set.DurationVar(&o.Snapshot.Poll, "snapshot-poll-interval", time.Second, "delay before the first check of a snapshot that is not ready")
	set.IntVar(&o.Resize.Workers, "resize-workers", 10, "maximum number of volumes that are expanded concurrently")
	set.IntVar(&o.Modify.Workers, "modify-workers", 10, "maximum number of volumes whose VolumeAttributesClass changes concurrently")
	set.DurationVar(&o.Health.Interval, "health-interval", time.Minute, "time between checks of the volumes' health")
}

// csiRetry contains the backoff for failed operations, which all features share.
type csiRetry struct{ minBackoff, maxBackoff time.Duration }

func (r *csiRetry) add(set *pflag.FlagSet) {
	set.DurationVar(&r.minBackoff, "retry-interval-start", time.Second, "delay after an operation's first error; it doubles after each subsequent error")
	set.DurationVar(&r.maxBackoff, "retry-interval-max", 5*time.Minute, "maximum delay after an error")
}

func (r *csiRetry) apply(o *csi.Options) {
	o.Attach.Retry, o.Attach.RetryMax = r.minBackoff, r.maxBackoff
	o.Provision.Retry, o.Provision.RetryMax = r.minBackoff, r.maxBackoff
	o.Resize.Retry, o.Resize.RetryMax = r.minBackoff, r.maxBackoff
	o.Modify.Retry, o.Modify.RetryMax = r.minBackoff, r.maxBackoff
	o.Snapshot.Retry = r.minBackoff
}

// csiObject contains the CSIDriver object's fields that the driver itself does not report.
type csiObject struct {
	enabled    bool
	podInfo    bool
	fsGroup    string
	lifecycles []string
}

func (c *csiObject) add(set *pflag.FlagSet) {
	set.BoolVar(&c.enabled, "driver-object", true, "create the CSIDriver object of a driver, unless it exists")
	c.addFields(set)
}

// addFields adds the flags that set the fields of the CSIDriver object.
func (c *csiObject) addFields(set *pflag.FlagSet) {
	set.BoolVar(&c.podInfo, "driver-pod-info", false, "pass information about the pod, such as its name, to the driver when a volume is published")
	set.StringVar(&c.fsGroup, "driver-fs-group-policy", string(storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy), "when to change the group of a volume's files to the pod's fsGroup: File, None or ReadWriteOnceWithFSType")
	set.StringSliceVar(&c.lifecycles, "driver-lifecycle-modes", []string{string(storagev1.VolumeLifecyclePersistent)}, "kinds of volumes that the driver supports: Persistent, Ephemeral")
}

// spec returns the spec of the CSIDriver object, or nil if the flags do not enable the object.
// StorageCapacity is true only if capacity is tracked, because the scheduler would otherwise not
// place any pods with the driver's volumes.
func (c *csiObject) spec(o csi.Options) (*storagev1.CSIDriverSpec, error) {
	if !c.enabled {
		return nil, nil
	}
	return c.fields(o.Capacity.Namespace != "")
}

// fields returns a CSIDriver spec with the values of the flags.
func (c *csiObject) fields(hasCapacity bool) (*storagev1.CSIDriverSpec, error) {
	policy := storagev1.FSGroupPolicy(c.fsGroup)
	policies := []storagev1.FSGroupPolicy{storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy}
	if !slices.Contains(policies, policy) {
		return nil, fmt.Errorf("parse --driver-fs-group-policy %q: must be one of %q", policy, policies)
	}
	spec := &storagev1.CSIDriverSpec{PodInfoOnMount: &c.podInfo, FSGroupPolicy: &policy}
	for _, mode := range c.lifecycles {
		switch mode := storagev1.VolumeLifecycleMode(mode); mode {
		case storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral:
			spec.VolumeLifecycleModes = append(spec.VolumeLifecycleModes, mode)
		default:
			return nil, fmt.Errorf("parse --driver-lifecycle-modes %q: must be Persistent or Ephemeral", mode)
		}
	}
	if !hasCapacity {
		spec.StorageCapacity = new(bool)
	}
	return spec, nil
}
