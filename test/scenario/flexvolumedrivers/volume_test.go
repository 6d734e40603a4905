package flexvolumedrivers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/test/kit"
)

// volume returns a PersistentVolume's name, which consists of the common name of its claim and pod,
// and their namespace.
func (d *driver) volume(name string) string { return name + "." + d.c.Namespace }

// claim creates a PersistentVolume that uses the driver, and a claim for the volume. change, if not
// nil, modifies the volume.
func (d *driver) claim(name string, change func(*corev1.PersistentVolume)) {
	d.t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("32Mi")}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: d.volume(name)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      size,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              className,
			ClaimRef:                      &corev1.ObjectReference{Namespace: d.c.Namespace, Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: d.name, FSType: "ext4"},
			},
		},
	}
	if change != nil {
		change(pv)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: pv.Spec.AccessModes, StorageClassName: ptr.To(className), VolumeName: pv.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: pv.Spec.Capacity},
		},
	}
	core := d.c.Client.CoreV1()
	if _, err := core.PersistentVolumes().Create(context.Background(), pv, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
	if _, err := core.PersistentVolumeClaims(d.c.Namespace).Create(context.Background(), claim, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// large selects XFS, which can grow while it is mounted. ext4 can do this only on a machine with
// CAP_SYS_RESOURCE.
func large(pv *corev1.PersistentVolume) {
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("320Mi")}
	pv.Spec.FlexVolume.FSType = "xfs"
}

// pod creates a pod that uses the claim of the same name, and that records its start on the volume.
// change, if not nil, modifies the pod.
func (d *driver) pod(name string, change func(*corev1.Pod)) {
	d.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: "user", Image: kit.ToolsImage,
				Command:      []string{"sh", "-c", "date >>/data/starts; sync; exec sleep infinity"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}}},
		},
	}
	if change != nil {
		change(pod)
	}
	if claim := pod.Spec.Volumes[0].PersistentVolumeClaim; claim != nil {
		// Wait until the claim is bound, because the scheduler would otherwise delay the pod for
		// several seconds.
		d.c.WaitFor("binding of claim "+claim.ClaimName, func(ctx context.Context) error {
			if phase := readClaim(ctx, d.c, claim.ClaimName).Status.Phase; phase != corev1.ClaimBound {
				return fmt.Errorf("it is %q", phase)
			}
			return nil
		})
	}
	if _, err := d.c.Client.CoreV1().Pods(d.c.Namespace).Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// use creates a volume, a claim and a pod for each name.
func (d *driver) use(names ...string) {
	d.t.Helper()
	for _, name := range names {
		d.claim(name, nil)
	}
	for _, name := range names {
		d.pod(name, nil)
	}
}

// run works like use, but also waits until the pods are running.
func (d *driver) run(names ...string) {
	d.t.Helper()
	d.use(names...)
	d.waitRunning(names...)
}

func (d *driver) waitRunning(names ...string) {
	d.t.Helper()
	for _, name := range names {
		d.c.WaitPodRunning(name)
	}
}

// deletePods deletes pods without waiting.
func (d *driver) deletePods(names ...string) {
	d.t.Helper()
	for _, name := range names {
		err := d.c.Client.CoreV1().Pods(d.c.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			d.t.Fatal(err)
		}
	}
}

// waitPodsGone waits until the pods no longer exist.
func (d *driver) waitPodsGone(names ...string) {
	d.t.Helper()
	d.c.WaitFor("end of pods", func(ctx context.Context) error {
		for _, name := range names {
			if _, err := d.c.Client.CoreV1().Pods(d.c.Namespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("pod %s, error %v", name, err)
			}
		}
		return nil
	})
}

// remove deletes pods, waits until the driver's volumes are no longer in use, and deletes the
// claims and PersistentVolumes. The storage keeps the data.
func (d *driver) remove(names ...string) {
	d.t.Helper()
	d.deletePods(names...)
	d.waitReleased()
	core := d.c.Client.CoreV1()
	for _, name := range names {
		for title, err := range map[string]error{
			"claim":  core.PersistentVolumeClaims(d.c.Namespace).Delete(context.Background(), name, metav1.DeleteOptions{}),
			"volume": core.PersistentVolumes().Delete(context.Background(), d.volume(name), metav1.DeleteOptions{}),
		} {
			if err != nil {
				d.t.Errorf("delete %s %s: %v", title, name, err)
			}
		}
	}
}

// className is the name of a StorageClass for manually created volumes whose claims can grow.
const className = "by-hand"

// withClass creates the class in a cluster and returns the cluster.
func withClass(c *kit.Cluster) *kit.Cluster {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: "kubernetes.io/no-provisioner", AllowVolumeExpansion: ptr.To(true),
	}
	c.WaitFor("class "+className, func(ctx context.Context) error {
		_, err := c.Client.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	return c
}

// waitEvent waits for an event in the test's namespace with the given reason and a message that
// contains the given text.
func waitEvent(c *kit.Cluster, reason, message string) {
	c.WaitFor(fmt.Sprintf("event %s with %q", reason, message), func(ctx context.Context) error {
		events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var values []string
		for _, event := range events.Items {
			if event.Reason == reason && strings.Contains(event.Message, message) {
				return nil
			}
			values = append(values, event.Reason+": "+event.Message)
		}
		return fmt.Errorf("there are %q", values)
	})
}
