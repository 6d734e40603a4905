package set

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
)

// triggers holds the state of `oc set triggers`.
type triggers struct {
	config                             bool
	image, containers                  string
	github, gitlab, bitbucket, generic bool
	genericEnv                         bool
	auto, manual                       bool
	remove, removeAll                  bool
}

func newTriggers(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, s := newTargets(factory, streams, "triggers updated"), &triggers{}
	command := &cobra.Command{
		Use:   "triggers (-f FILENAME | TYPE/NAME) [--from-config|--from-image|--from-github|--from-webhook] [--auto|--manual|--remove|--remove-all]",
		Short: "Update the triggers on one or more objects",
		Long: `Print, set or remove the triggers of deployments and builds: configuration changes, new images for a tag, and webhooks.

Without flags, the command lists the triggers. --auto or --manual without other flags enables or disables all triggers. For a disabled image trigger,
oc rollout latest still resolves the image. Deployments, stateful sets, daemon sets and cron jobs have image triggers in an annotation. Disabling the config change
trigger of a Deployment pauses it. Build configs also have webhook triggers, each with a generated secret.`,
		Example: `  oc set triggers dc/web
  oc set triggers dc/web --manual
  oc set triggers dc/web --from-image=app:latest -c web
  oc set triggers deploy/web --from-image=shop/app:latest -c web
  oc set triggers dc/web --from-config --remove
  oc set triggers bc/app --from-image=ruby:2.5 --from-github
  oc set triggers bc/app --remove-all`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(t.check(args))
			if *s != (triggers{}) {
				util.CheckErr(s.validate())
			}
			infos, err := t.find(args)
			util.CheckErr(err)
			if *s == (triggers{}) {
				util.CheckErr(list(streams, infos))
				return
			}
			util.CheckErr(t.change(command, infos, s.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&s.config, "from-config", false, "The config change trigger.")
	flags.StringVar(&s.image, "from-image", "", "The trigger for new images of a tag, as [PROJECT/]STREAM:TAG.")
	flags.StringVarP(&s.containers, "containers", "c", "", "Names of the containers for the image, separated by commas.")
	flags.BoolVar(&s.github, "from-github", false, "The trigger for GitHub webhooks, with a new secret.")
	flags.BoolVar(&s.gitlab, "from-gitlab", false, "The trigger for GitLab webhooks, with a new secret.")
	flags.BoolVar(&s.bitbucket, "from-bitbucket", false, "The trigger for Bitbucket webhooks, with a new secret.")
	flags.BoolVar(&s.generic, "from-webhook", false, "The trigger for generic webhooks, with a new secret.")
	flags.BoolVar(&s.genericEnv, "from-webhook-allow-env", false, "The trigger for generic webhooks that can set variables of the build, with a new secret.")
	flags.BoolVar(&s.auto, "auto", false, "Enable the triggers. This is the default for new triggers.")
	flags.BoolVar(&s.manual, "manual", false, "Disable the triggers.")
	flags.BoolVar(&s.remove, "remove", false, "Remove the selected triggers.")
	flags.BoolVar(&s.removeAll, "remove-all", false, "Remove all triggers.")
	return command
}

// hooks returns the webhook types that the flags select.
func (s *triggers) hooks() (kinds []buildv1.BuildTriggerType) {
	for _, hook := range []struct {
		named bool
		kind  buildv1.BuildTriggerType
	}{
		{s.github, buildv1.GitHubWebHookBuildTriggerType}, {s.gitlab, buildv1.GitLabWebHookBuildTriggerType},
		{s.bitbucket, buildv1.BitbucketWebHookBuildTriggerType}, {s.generic || s.genericEnv, buildv1.GenericWebHookBuildTriggerType},
	} {
		if hook.named {
			kinds = append(kinds, hook.kind)
		}
	}
	return kinds
}

// hookTitle returns the name that messages use for a webhook type.
func hookTitle(kind buildv1.BuildTriggerType) string {
	if kind == buildv1.GenericWebHookBuildTriggerType {
		return "web hooks"
	}
	return string(kind) + " web hooks"
}

// named reports whether the flags select triggers.
func (s *triggers) named() bool { return s.config || s.image != "" || len(s.hooks()) > 0 }

func (s *triggers) validate() error {
	stream, tag, _ := strings.Cut(s.image, ":")
	switch {
	case s.auto && s.manual:
		return errors.New("you must specify at most one of --auto or --manual")
	case s.remove && s.removeAll:
		return errors.New("you must specify either --remove or --remove-all")
	case s.removeAll && (s.remove || s.named() || s.auto || s.manual):
		return errors.New("use --remove-all without other flags")
	case s.image != "" && (stream == "" || tag == "" || strings.Count(s.image, "/") > 1):
		return fmt.Errorf("parse --from-image %q: must be STREAM:TAG or PROJECT/STREAM:TAG", s.image)
	case s.remove && !s.named():
		return errors.New("no triggers to remove: set --from-config, --from-image or a webhook such as --from-github, or --remove-all")
	}
	return nil
}

// change adds, removes, enables or disables an object's triggers.
func (s *triggers) change(object runtime.Object) error {
	d, err := triggersOf(object)
	if err != nil {
		return err
	}
	if hooks := s.hooks(); len(hooks) > 0 && !d.takesHooks {
		return fmt.Errorf("%s %s; only build configs do", cmp.Or(d.refusal, "does not support"), hookTitle(hooks[0]))
	}
	if s.config && d.alwaysConfig {
		return errors.New("its config change trigger cannot be disabled: only deployment configs, build configs and Deployments support this")
	}
	switch {
	case s.removeAll:
		d.config, d.images, d.hooks = false, nil, nil
	case s.remove:
		d.config = d.config && !s.config
		d.images = slices.DeleteFunc(d.images, func(t imageTrigger) bool { return s.image != "" && s.from(d, t) })
		d.hooks = slices.DeleteFunc(d.hooks, func(t hookTrigger) bool { return slices.Contains(s.hooks(), t.kind) })
	case s.named():
		if s.config {
			d.config = !s.manual
		}
		if err := s.add(d); err != nil {
			return err
		}
	default:
		d.config = s.auto
		for i := range d.images {
			d.images[i].auto = s.auto
		}
	}
	return d.store(d)
}

// add adds the selected triggers. A new trigger replaces existing triggers for the same webhook
// type or tag.
func (s *triggers) add(d *definition) error {
	if s.image != "" {
		if err := d.checkContainers(s.containers); err != nil {
			return err
		}
		added := imageTrigger{from: s.reference(d), containers: s.containers, auto: !s.manual}
		d.images = append(slices.DeleteFunc(d.images, func(t imageTrigger) bool { return s.from(d, t) }), added)
	}
	for _, kind := range s.hooks() {
		d.hooks = slices.DeleteFunc(d.hooks, func(t hookTrigger) bool { return t.kind == kind })
		d.hooks = append(d.hooks, hookTrigger{kind, &buildv1.WebHookTrigger{
			Secret: rand.Text(), AllowEnv: s.genericEnv && kind == buildv1.GenericWebHookBuildTriggerType,
		}})
	}
	return nil
}

// reference returns a reference to the tag in --from-image.
func (s *triggers) reference(d *definition) corev1.ObjectReference {
	namespace, name, ok := strings.Cut(s.image, "/")
	if !ok {
		namespace, name = d.namespace, s.image
	}
	return corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: namespace, Name: name}
}

// from reports whether a trigger is for the tag in --from-image.
func (s *triggers) from(d *definition, trigger imageTrigger) bool {
	ref := s.reference(d)
	return trigger.from.Name == ref.Name && (trigger.from.Namespace == ref.Namespace || trigger.from.Namespace == "" && ref.Namespace == d.namespace)
}

// list prints the triggers of objects.
func list(streams genericiooptions.IOStreams, infos []*resource.Info) error {
	table := tabwriter.NewWriter(streams.Out, 0, 8, 1, '\t', 0)
	fmt.Fprintln(table, "NAME\tTYPE\tVALUE\tAUTO")
	for _, info := range infos {
		d, err := triggersOf(info.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", info.ObjectName(), err)
		}
		fmt.Fprintf(table, "%s\tconfig\t\t%t\n", d.name, d.config || d.alwaysConfig)
		for _, trigger := range d.images {
			name := trigger.from.Name
			if trigger.from.Namespace != "" && trigger.from.Namespace != d.namespace {
				name = trigger.from.Namespace + "/" + name
			}
			if trigger.containers != "" {
				name += " (" + strings.ReplaceAll(trigger.containers, ",", ", ") + ")"
			}
			fmt.Fprintf(table, "%s\timage\t%s\t%t\n", d.name, name, trigger.auto)
		}
		for _, hook := range d.hooks {
			fmt.Fprintf(table, "%s\t%s\t%s\t\n", d.name, hook.word(), hook.secret())
		}
	}
	return table.Flush()
}
