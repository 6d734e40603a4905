package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubectl/pkg/cmd/util"
)

// podFlags contains the flags that OpenShift 3's `oc run` has, but `kubectl run` no longer has.
type podFlags struct {
	limits, requests, account string
	hostPort                  int32
}

func (p *podFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&p.limits, "limits", "", "Limits of the container, such as cpu=200m,memory=512Mi.")
	flags.StringVar(&p.requests, "requests", "", "Requests of the container, such as cpu=100m,memory=256Mi.")
	flags.StringVar(&p.account, "serviceaccount", "", "Service account of the pods.")
	flags.Int32Var(&p.hostPort, "hostport", 0, "Host port to map to --port.")
}

// apply sets the fields that correspond to the flags. pod must have a single container.
func (p podFlags) apply(pod *corev1.PodSpec) (err error) {
	container := &pod.Containers[0]
	if container.Resources.Limits, err = quantities(p.limits); err != nil {
		return fmt.Errorf("parse --limits: %w", err)
	}
	if container.Resources.Requests, err = quantities(p.requests); err != nil {
		return fmt.Errorf("parse --requests: %w", err)
	}
	pod.ServiceAccountName = p.account
	if p.hostPort == 0 {
		return nil
	}
	if len(container.Ports) == 0 {
		return errors.New("--hostport needs --port, the port of the container")
	}
	container.Ports[0].HostPort = p.hostPort
	return nil
}

// quantities parses quantities in the form RESOURCE=QUANTITY,RESOURCE=QUANTITY.
func quantities(text string) (corev1.ResourceList, error) {
	if text == "" {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		quantity, err := resource.ParseQuantity(value)
		if err != nil || name == "" {
			return nil, fmt.Errorf("%q must be RESOURCE=QUANTITY, such as cpu=200m", pair)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// overrides sets the same fields as apply. It does so with kubectl's --overrides flag.
func (p podFlags) overrides(command *cobra.Command, pod corev1.PodSpec) error {
	if p == (podFlags{}) {
		return nil
	}
	flags := command.Flags()
	if flags.Changed("overrides") {
		return errors.New("--limits, --requests, --serviceaccount and --hostport cannot be used with --overrides; set these values in --overrides")
	}
	container := map[string]any{"name": pod.Containers[0].Name, "resources": pod.Containers[0].Resources}
	if len(pod.Containers[0].Ports) > 0 {
		container["ports"] = pod.Containers[0].Ports
	}
	spec := map[string]any{"containers": []any{container}}
	if pod.ServiceAccountName != "" {
		spec["serviceAccountName"] = pod.ServiceAccountName
	}
	patch, err := json.Marshal(map[string]any{"apiVersion": "v1", "spec": spec})
	if err != nil {
		return err
	}
	return errors.Join(flags.Set("overrides", string(patch)), flags.Set("override-type", string(util.OverrideTypeStrategic)))
}
