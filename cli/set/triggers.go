package set

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	appsv1 "github.com/openshift/api/apps/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
)

// triggers is what shall become of the triggers of DeploymentConfigs.
type triggers struct {
	config            bool
	image, containers string
	auto, manual      bool
	remove, removeAll bool
}

func newTriggers(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, s := newTargets(factory, streams, "triggers updated"), &triggers{}
	command := &cobra.Command{
		Use:   "triggers dc/NAME [--from-config] [--from-image=STREAM:TAG --containers=NAMES] [--auto|--manual|--remove|--remove-all]",
		Short: "Update the triggers of deployment configs",
		Long: `Show, set or remove what starts deployments: changes of the configuration, and new images of a tag.

Without flags the triggers are listed. --auto or --manual alone switches all triggers on or off; the images of manual
ones are still brought by oc rollout latest.`,
		Example: `  oc set triggers dc/web
  oc set triggers dc/web --manual
  oc set triggers dc/web --auto
  oc set triggers dc/web --from-image=app:latest -c web
  oc set triggers dc/web --from-config --remove`,
		Run: func(command *cobra.Command, args []string) {
			infos, err := t.find(args)
			util.CheckErr(err)
			if *s == (triggers{}) {
				util.CheckErr(list(streams, infos))
				return
			}
			util.CheckErr(s.validate())
			util.CheckErr(t.change(command, infos, s.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&s.config, "from-config", false, "The trigger by changes of the configuration.")
	flags.StringVar(&s.image, "from-image", "", "The trigger by images of a tag, as [PROJECT/]STREAM:TAG.")
	flags.StringVarP(&s.containers, "containers", "c", "", "Names of the containers that get the image, with commas between them.")
	flags.BoolVar(&s.auto, "auto", false, "Deploy by itself, which is the default of triggers that are added.")
	flags.BoolVar(&s.manual, "manual", false, "Do not deploy by itself.")
	flags.BoolVar(&s.remove, "remove", false, "Remove the named triggers.")
	flags.BoolVar(&s.removeAll, "remove-all", false, "Remove all triggers.")
	return command
}

func (s *triggers) validate() error {
	_, tag, found := strings.Cut(s.image, ":")
	named := s.config || s.image != ""
	switch {
	case s.auto && s.manual:
		return errors.New("give only one of --auto and --manual")
	case s.image != "" && (!found || tag == ""):
		return fmt.Errorf("read --from-image %q: must be STREAM:TAG", s.image)
	case s.image != "" && s.containers == "" && !s.remove:
		return errors.New("say with --containers which containers get the image")
	case s.remove && !named:
		return errors.New("say which triggers to remove: --from-config or --from-image, or --remove-all")
	}
	return nil
}

// change changes the triggers of a DeploymentConfig.
func (s *triggers) change(object runtime.Object) error {
	dc, ok := object.(*appsv1.DeploymentConfig)
	if !ok {
		return errors.New("only deployment configs have such triggers")
	}
	all := append(appsv1.DeploymentTriggerPolicies{}, dc.Spec.Triggers...) // not nil, which is not sent
	byConfig := func(t appsv1.DeploymentTriggerPolicy) bool { return t.Type == appsv1.DeploymentTriggerOnConfigChange }
	switch {
	case s.removeAll:
		all = all[:0]
	case s.remove:
		all = slices.DeleteFunc(all, func(t appsv1.DeploymentTriggerPolicy) bool {
			return s.config && byConfig(t) || s.image != "" && s.from(dc, t)
		})
	case s.config || s.image != "":
		if s.config {
			all = slices.DeleteFunc(all, byConfig)
		}
		if s.config && !s.manual {
			all = append(all, appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnConfigChange})
		}
		if s.image != "" {
			added, err := s.fromImage(dc)
			if err != nil {
				return err
			}
			all = append(slices.DeleteFunc(all, func(t appsv1.DeploymentTriggerPolicy) bool { return s.from(dc, t) }), added)
		}
	default:
		all = slices.DeleteFunc(all, byConfig)
		if s.auto {
			all = append(all, appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnConfigChange})
		}
		for i := range all {
			if params := all[i].ImageChangeParams; params != nil {
				params.Automatic = s.auto
			}
		}
	}
	dc.Spec.Triggers = all
	return nil
}

// reference is the tag of --from-image; its project is empty for the configuration's own.
func (s *triggers) reference(dc *appsv1.DeploymentConfig) corev1.ObjectReference {
	namespace, name, found := strings.Cut(s.image, "/")
	if !found {
		namespace, name = dc.Namespace, s.image
	}
	return corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: namespace, Name: name}
}

// from says whether a trigger is the one by the tag.
func (s *triggers) from(dc *appsv1.DeploymentConfig, trigger appsv1.DeploymentTriggerPolicy) bool {
	params, wanted := trigger.ImageChangeParams, s.reference(dc)
	return params != nil && params.From.Name == wanted.Name && (params.From.Namespace == wanted.Namespace || params.From.Namespace == "" && wanted.Namespace == dc.Namespace)
}

// fromImage is the trigger by the tag.
func (s *triggers) fromImage(dc *appsv1.DeploymentConfig) (added appsv1.DeploymentTriggerPolicy, err error) {
	names := strings.Split(s.containers, ",")
	for _, name := range names {
		named := func(c corev1.Container) bool { return c.Name == name }
		if dc.Spec.Template == nil || !slices.ContainsFunc(dc.Spec.Template.Spec.Containers, named) && !slices.ContainsFunc(dc.Spec.Template.Spec.InitContainers, named) {
			return added, fmt.Errorf("it has no container %q", name)
		}
	}
	return appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
		Automatic: !s.manual, ContainerNames: names, From: s.reference(dc),
	}}, nil
}

// list prints the triggers.
func list(streams genericiooptions.IOStreams, infos []*resource.Info) error {
	table := tabwriter.NewWriter(streams.Out, 0, 8, 1, '\t', 0)
	fmt.Fprintln(table, "NAME\tTYPE\tVALUE\tAUTO")
	for _, info := range infos {
		dc, ok := info.Object.(*appsv1.DeploymentConfig)
		if !ok {
			return fmt.Errorf("%s is no deployment config; only these have such triggers", info.ObjectName())
		}
		config := slices.ContainsFunc(dc.Spec.Triggers, func(t appsv1.DeploymentTriggerPolicy) bool { return t.Type == appsv1.DeploymentTriggerOnConfigChange })
		fmt.Fprintf(table, "deploymentconfigs/%s\tconfig\t\t%t\n", dc.Name, config)
		for _, trigger := range dc.Spec.Triggers {
			params := trigger.ImageChangeParams
			if params == nil {
				continue
			}
			name := params.From.Name
			if params.From.Namespace != "" && params.From.Namespace != dc.Namespace {
				name = params.From.Namespace + "/" + name
			}
			fmt.Fprintf(table, "deploymentconfigs/%s\timage\t%s (%s)\t%t\n", dc.Name, name, strings.Join(params.ContainerNames, ", "), params.Automatic)
		}
	}
	return table.Flush()
}
