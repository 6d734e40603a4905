package set

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	cliresource "k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newClaim contains the flags for a claim that is created together with a volume.
type newClaim struct {
	size, mode, class string
	classSet          *pflag.Flag // --claim-class; an empty value selects no class
	amount            resource.Quantity
}

func (c *newClaim) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.size, "claim-size", "", "Create a claim of this size, such as 5Gi, for persistentVolumeClaim.")
	flags.StringVar(&c.mode, "claim-mode", "ReadWriteOnce", "Access mode: ReadWriteOnce (rwo), ReadOnlyMany (rom), ReadWriteMany (rwm) or ReadWriteOncePod.")
	flags.StringVar(&c.class, "claim-class", "", "Storage class. The default is the cluster's default class.")
	c.classSet = flags.Lookup("claim-class")
}

// prepareClaim validates the flags for a new claim. If --claim-name is not set, it generates the
// claim's name.
func (v *volume) prepareClaim() (err error) {
	c := &v.newClaim
	if c.size == "" {
		if c.classSet != nil && c.classSet.Changed {
			return errors.New("--claim-class needs --claim-size, which creates a claim")
		}
		return nil
	}
	switch v.kind {
	case "":
		v.kind = "persistentVolumeClaim"
	case "persistentVolumeClaim", "persistentvolumeclaim", "pvc":
	default:
		return fmt.Errorf("--claim-size is for volumes of type persistentVolumeClaim, not %s", v.kind)
	}
	if !v.add {
		return errors.New("--claim-size needs --add")
	}
	if c.amount, err = resource.ParseQuantity(c.size); err != nil || c.amount.Sign() <= 0 {
		return fmt.Errorf("parse --claim-size %q: must be a size such as 5Gi", c.size)
	}
	if _, err := accessMode(c.mode); err != nil {
		return err
	}
	if v.claim == "" {
		v.claim = "pvc-" + rand.String(5)
	}
	return nil
}

// accessMode parses an access mode. It also accepts the short names of OpenShift 3.11 and
// Kubernetes.
func accessMode(text string) (corev1.PersistentVolumeAccessMode, error) {
	switch strings.ToLower(text) {
	case "readwriteonce", "rwo":
		return corev1.ReadWriteOnce, nil
	case "readonlymany", "rom", "rox":
		return corev1.ReadOnlyMany, nil
	case "readwritemany", "rwm", "rwx":
		return corev1.ReadWriteMany, nil
	case "readwriteoncepod", "rwop":
		return corev1.ReadWriteOncePod, nil
	}
	return "", fmt.Errorf("parse --claim-mode %q: must be ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod", text)
}

// claimIn returns the claim to create in a namespace.
func (v *volume) claimIn(namespace string) *corev1.PersistentVolumeClaim {
	mode, _ := accessMode(v.newClaim.mode) // prepareClaim has validated the mode
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.claim},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: v.newClaim.amount}},
		},
	}
	if v.newClaim.classSet.Changed {
		claim.Spec.StorageClassName = &v.newClaim.class
	}
	return claim
}

// makeClaims creates the claim in the project of each object, before the objects refer to the
// claim. It returns an error if a claim with the same name exists.
func (v *volume) makeClaims(t *targets, command *cobra.Command, infos []*cliresource.Info) error {
	dry, err := util.GetDryRunStrategy(command)
	if err != nil || v.newClaim.size == "" || t.local || dry == util.DryRunClient {
		return err
	}
	// Try the change as a dry run first, so that no claim is created if the server rejects the
	// volume in an object.
	var trial []*cliresource.Info
	for _, info := range infos {
		same := *info
		same.Object = info.Object.DeepCopyObject()
		trial = append(trial, &same)
	}
	if err := t.store(trial, v.change, util.DryRunServer, func(runtime.Object) error { return nil }); err != nil {
		return err
	}
	clients, err := t.factory.KubernetesClientSet()
	if err != nil {
		return err
	}
	claims := map[string]bool{}
	for _, info := range infos {
		if claims[info.Namespace] {
			continue
		}
		claims[info.Namespace] = true
		var options metav1.CreateOptions
		if dry == util.DryRunServer {
			options.DryRun = []string{metav1.DryRunAll}
		}
		if _, err := clients.CoreV1().PersistentVolumeClaims(info.Namespace).Create(command.Context(), v.claimIn(info.Namespace), options); err != nil {
			return fmt.Errorf("create claim %q: %w", v.claim, err)
		}
		fmt.Fprintf(t.streams.ErrOut, "persistentvolumeclaim/%s created\n", v.claim)
	}
	return nil
}
