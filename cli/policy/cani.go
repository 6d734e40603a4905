package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
)

// canI holds the state of `oc policy can-i`.
type canI struct {
	client               dynamic.Interface
	namespace            string
	user                 string
	groups, scopes       []string
	ignoreScopes         bool
	list, quiet, anyPart bool
	output               string
	action               authorizationv1.Action // the action to check, unless --list is set
}

// newCanI returns `can-i`, which checks whether an action is allowed.
func newCanI(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	c := &canI{}
	command := &cobra.Command{
		Use:   "can-i VERB RESOURCE [NAME]",
		Short: "Check whether an action is allowed",
		Long: `Check whether an action is allowed in the current project, or list all allowed actions.

VERB is a verb of the API such as get, list, create or delete. RESOURCE can include a group
and a subresource, as in routes.route.openshift.io/custom-host, or be a path such as /healthz.`,
		Example: `  # Check whether you can create deployment configurations
  oc policy can-i create dc

  # List what you can do in this project
  oc policy can-i --list

  # Check whether a token with this scope can list projects
  oc policy can-i list projects --scopes=user:info`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(c.validate(command, args))
			util.CheckErr(c.complete(factory, args))
			allowed, err := c.run(command.Context(), streams)
			util.CheckErr(err)
			if c.quiet && !allowed {
				os.Exit(2)
			}
		},
	}
	flags := command.Flags()
	flags.BoolVar(&c.anyPart, "all-namespaces", false, "Check in all projects.")
	flags.StringVarP(&c.output, "output", "o", "", "Format of --list: json, yaml or wide.")
	flags.BoolVar(&c.list, "list", false, "List the rules of the user in the project.")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "Print nothing; the exit code is 2 when the action is not allowed.")
	flags.BoolVar(&c.ignoreScopes, "ignore-scopes", false, "Ignore the scopes of the token.")
	flags.StringSliceVar(&c.scopes, "scopes", nil, "Scopes to use for the check.")
	flags.StringVar(&c.user, "user", "", "User to check, instead of yourself.")
	flags.StringSliceVar(&c.groups, "groups", nil, "Groups to check, instead of yourself.")
	return command
}

func (c *canI) validate(command *cobra.Command, args []string) error {
	switch {
	case c.ignoreScopes && len(c.scopes) > 0:
		return errors.New("--scopes and --ignore-scopes cannot be used together")
	case c.list && len(args) > 0:
		return util.UsageErrorf(command, "--list cannot be used with a verb or a resource")
	case !c.list && (len(args) < 2 || len(args) > 3):
		return util.UsageErrorf(command, "specify a verb and a resource, or use --list")
	}
	return nil
}

func (c *canI) complete(factory util.Factory, args []string) (err error) {
	if c.ignoreScopes {
		c.scopes = []string{}
	}
	if c.client, err = factory.DynamicClient(); err != nil {
		return err
	}
	if c.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil || c.list {
		return err
	}
	c.action, err = actionOf(factory, args)
	return err
}

// run prints whether the action is allowed. If --list is set, it prints the user's rules instead.
func (c *canI) run(ctx context.Context, streams genericiooptions.IOStreams) (allowed bool, err error) {
	if c.list {
		return true, c.printRules(ctx, streams)
	}
	response, err := c.check(ctx, c.action)
	if err != nil {
		return false, err
	}
	if !c.quiet {
		fmt.Fprintln(streams.Out, yesOrNo(response))
	}
	return response.Allowed, nil
}

// actionOf parses a verb, a resource or URL path, and an optional name.
func actionOf(factory util.Factory, args []string) (action authorizationv1.Action, err error) {
	action.Verb = args[0]
	if strings.HasPrefix(args[1], "/") {
		action.Path, action.IsNonResourceURL = args[1], true
		return action, nil
	}
	if len(args) == 3 {
		action.ResourceName = args[2]
	}
	name, subresource, _ := strings.Cut(args[1], "/")
	action.Resource = name
	if name != "*" {
		mapper, err := factory.ToRESTMapper()
		if err != nil {
			return action, err
		}
		resource := schema.ParseGroupResource(name)
		existing, err := mapper.ResourceFor(resource.WithVersion(""))
		if err != nil { // a role can refer to resources that the server does not have
			existing = resource.WithVersion("")
		}
		action.Group, action.Resource = existing.Group, existing.Resource
	}
	if subresource != "" {
		action.Resource += "/" + subresource
	}
	return action, nil
}

// check requests a review of whether an action is allowed in the project or, if --all-namespaces is
// set, in all projects.
func (c *canI) check(ctx context.Context, action authorizationv1.Action) (resp authorizationv1.SubjectAccessReviewResponse, err error) {
	if c.anyPart {
		err = sendReview(ctx, c.client, authorizationv1.GroupVersion.WithResource("subjectaccessreviews"), "", &authorizationv1.SubjectAccessReview{
			TypeMeta: authorizationType("SubjectAccessReview"), Action: action, User: c.user, GroupsSlice: c.groups, Scopes: c.scopes,
		}, &resp)
		return resp, err
	}
	err = sendReview(ctx, c.client, authorizationv1.GroupVersion.WithResource("localsubjectaccessreviews"), c.namespace, &authorizationv1.LocalSubjectAccessReview{
		TypeMeta: authorizationType("LocalSubjectAccessReview"), Action: action, User: c.user, GroupsSlice: c.groups, Scopes: c.scopes,
	}, &resp)
	return resp, err
}

func authorizationType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: authorizationv1.GroupVersion.String(), Kind: kind}
}

func yesOrNo(resp authorizationv1.SubjectAccessReviewResponse) string {
	switch {
	case resp.Allowed:
		return "yes"
	case resp.EvaluationError != "":
		return "no - " + resp.EvaluationError
	}
	return "no"
}

// rules returns the rules that apply to the user in the project.
func (c *canI) rules(ctx context.Context) (authorizationv1.SubjectRulesReviewStatus, error) {
	if c.user == "" && len(c.groups) == 0 {
		var resp authorizationv1.SelfSubjectRulesReview
		err := sendReview(ctx, c.client, authorizationv1.GroupVersion.WithResource("selfsubjectrulesreviews"), c.namespace, &authorizationv1.SelfSubjectRulesReview{
			TypeMeta: authorizationType("SelfSubjectRulesReview"), Spec: authorizationv1.SelfSubjectRulesReviewSpec{Scopes: c.scopes},
		}, &resp)
		return resp.Status, err
	}
	var resp authorizationv1.SubjectRulesReview
	err := sendReview(ctx, c.client, authorizationv1.GroupVersion.WithResource("subjectrulesreviews"), c.namespace, &authorizationv1.SubjectRulesReview{
		TypeMeta: authorizationType("SubjectRulesReview"),
		Spec:     authorizationv1.SubjectRulesReviewSpec{User: c.user, Groups: c.groups, Scopes: c.scopes},
	}, &resp)
	return resp.Status, err
}

func (c *canI) printRules(ctx context.Context, streams genericiooptions.IOStreams) error {
	status, err := c.rules(ctx)
	if err != nil {
		return err
	}
	switch c.output {
	case "", "wide":
		writePolicyRules(streams.Out, status.Rules)
	default:
		resp := &authorizationv1.SelfSubjectRulesReview{TypeMeta: authorizationType("SelfSubjectRulesReview"), Status: status}
		printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(c.output)
		if err != nil {
			return err
		}
		if err := printer.PrintObj(resp, streams.Out); err != nil {
			return err
		}
	}
	if status.EvaluationError != "" {
		fmt.Fprintf(streams.ErrOut, "Error during evaluation, results may not be complete: %s\n", status.EvaluationError)
	}
	return nil
}

// writePolicyRules prints rules in OpenShift 3's format. It removes duplicates, and sorts the rules
// and their verbs.
func writePolicyRules(out io.Writer, rules []authorizationv1.PolicyRule) {
	table := printers.GetNewTabWriter(out)
	defer func() { _ = table.Flush() }()
	fmt.Fprintln(table, "VERBS\tNON-RESOURCE URLS\tRESOURCE NAMES\tAPI GROUPS\tRESOURCES")
	lines := make([]string, 0, len(rules))
	for _, rule := range rules {
		lines = append(lines, fmt.Sprintf("%v\t%v\t%v\t%v\t%v", slices.Sorted(slices.Values(rule.Verbs)), rule.NonResourceURLsSlice, rule.ResourceNames, rule.APIGroups, rule.Resources))
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(table, line)
	}
}
