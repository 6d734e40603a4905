package set

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// deploymentHook holds the state of `oc set deployment-hook`.
type deploymentHook struct {
	pre, mid, post, remove bool

	container, policy    string
	environment, volumes []string
	command              []string
}

func newDeploymentHook(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, h := newTargets(factory, streams, "hooks updated"), &deploymentHook{}
	command := &cobra.Command{
		Use:   "deployment-hook dc/NAME (--pre | --mid | --post) (--remove | -- COMMAND)",
		Short: "Update a deployment hook on a deployment config",
		Long: `Set or remove a command that runs in a separate pod during every deployment.

The strategies Rolling and Recreate have hooks before (--pre) and after (--post) a deployment. Only Recreate has a hook
between the old and the new pods (--mid). The pod has the image and the environment of one of the
deployment's containers, and the selected volumes.`,
		Example: `  oc set deployment-hook dc/web --pre --volumes=data -- /var/lib/migrate-db.sh
  oc set deployment-hook dc/web --mid -e MODE=fast --failure-policy=abort -- /var/lib/prepare.sh
  oc set deployment-hook dc/web --remove --pre --post`,
		Run: func(command *cobra.Command, args []string) {
			if at := command.ArgsLenAtDash(); at >= 0 {
				args, h.command = args[:at], args[at:]
			}
			t.noun = "deployment configs"
			util.CheckErr(t.check(args))
			util.CheckErr(h.validate())
			objects.WarnOfCommas(streams.ErrOut, "--environment", h.environment)
			if len(args) == 0 && t.all || t.selector != "" {
				args = []string{"deploymentconfigs"}
			}
			util.CheckErr(t.apply(command, ofResource("deploymentconfigs", args), h.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&h.pre, "pre", false, "The hook that runs before a deployment.")
	flags.BoolVar(&h.mid, "mid", false, "The hook that runs between the removal of the old pods and the creation of the new ones.")
	flags.BoolVar(&h.post, "post", false, "The hook that runs after a deployment.")
	flags.BoolVar(&h.remove, "remove", false, "Remove the hooks.")
	flags.StringVarP(&h.container, "container", "c", "", "Container whose image runs the hook. The default is the first one.")
	flags.StringArrayVarP(&h.environment, "environment", "e", nil, "A variable of the hook's environment, as NAME=VALUE.")
	flags.StringSliceVar(&h.volumes, "volumes", nil, "Names of the pod's volumes for the hook.")
	flags.StringVar(&h.policy, "failure-policy", "ignore", "Action if the hook fails: abort, retry or ignore.")
	return command
}

func (h *deploymentHook) validate() error {
	count := 0
	for _, isSet := range []bool{h.pre, h.mid, h.post} {
		if isSet {
			count++
		}
	}
	switch {
	case count == 0:
		return errors.New("you must specify one of --pre, --mid, or --post")
	case h.remove && (len(h.command) > 0 || len(h.volumes) > 0 || len(h.environment) > 0 || h.container != ""):
		return errors.New("--remove may not be used with any option except --pre, --mid, or --post")
	case h.remove:
		return nil
	case count > 1:
		return errors.New("you may only set one of --pre, --mid, or --post")
	case len(h.command) == 0:
		return errors.New("you must specify a command for the deployment hook")
	}
	_, err := h.hook()
	return err
}

// hook returns the hook that the flags describe. If --container is not set, the hook contains no
// container name.
func (h *deploymentHook) hook() (*appsv1.LifecycleHook, error) {
	policies := map[string]appsv1.LifecycleHookFailurePolicy{
		"abort": appsv1.LifecycleHookFailurePolicyAbort, "retry": appsv1.LifecycleHookFailurePolicyRetry, "ignore": appsv1.LifecycleHookFailurePolicyIgnore,
	}
	policy, ok := policies[strings.ToLower(h.policy)]
	if !ok {
		return nil, fmt.Errorf("parse --failure-policy %q: must be abort, retry or ignore", h.policy)
	}
	pod := &appsv1.ExecNewPodHook{Command: h.command, ContainerName: h.container, Volumes: h.volumes}
	for _, text := range h.environment {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("parse --environment %q: must be NAME=VALUE", text)
		}
		pod.Env = append(pod.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return &appsv1.LifecycleHook{FailurePolicy: policy, ExecNewPod: pod}, nil
}

// change sets or removes a DeploymentConfig's hooks.
func (h *deploymentHook) change(object runtime.Object) error {
	dc, ok := object.(*appsv1.DeploymentConfig)
	if !ok {
		return errors.New("only deployment configs have deployment hooks")
	}
	var hook *appsv1.LifecycleHook
	if !h.remove {
		var err error
		if hook, err = h.fitting(dc); err != nil {
			return err
		}
	}
	strategy := &dc.Spec.Strategy
	var pre, mid, post **appsv1.LifecycleHook
	switch strategy.Type {
	case appsv1.DeploymentStrategyTypeRecreate:
		if strategy.RecreateParams == nil {
			strategy.RecreateParams = &appsv1.RecreateDeploymentStrategyParams{}
		}
		pre, mid, post = &strategy.RecreateParams.Pre, &strategy.RecreateParams.Mid, &strategy.RecreateParams.Post
	case appsv1.DeploymentStrategyTypeRolling, "":
		if strategy.RollingParams == nil {
			strategy.RollingParams = &appsv1.RollingDeploymentStrategyParams{}
		}
		pre, post = &strategy.RollingParams.Pre, &strategy.RollingParams.Post
	default:
		return fmt.Errorf("its strategy %s does not support hooks", strategy.Type)
	}
	if h.mid && mid == nil {
		return errors.New("only the strategy Recreate supports the hook --mid")
	}
	for at, desired := range map[**appsv1.LifecycleHook]bool{pre: h.pre, mid: h.mid, post: h.post} {
		if desired {
			*at = hook
		}
	}
	return nil
}

// fitting returns the hook for a deployment config. If the deployment config lacks the hook's
// container or volumes, fitting returns an error of type unchanged.
func (h *deploymentHook) fitting(dc *appsv1.DeploymentConfig) (*appsv1.LifecycleHook, error) {
	hook, err := h.hook()
	if err != nil {
		return nil, err
	}
	if dc.Spec.Template == nil || len(dc.Spec.Template.Spec.Containers) == 0 {
		return nil, errors.New("it has no containers")
	}
	pod := dc.Spec.Template.Spec
	switch has := func(c corev1.Container) bool { return c.Name == h.container }; {
	case h.container == "":
		hook.ExecNewPod.ContainerName = pod.Containers[0].Name
	case !slices.ContainsFunc(pod.Containers, has):
		return nil, &unchanged{fmt.Sprintf("does not have a container named %q", h.container)}
	}
	for _, name := range h.volumes {
		if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
			return nil, &unchanged{fmt.Sprintf("does not have a volume named %q", name)}
		}
	}
	return hook, nil
}
