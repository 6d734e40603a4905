package policy

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/objects"
)

// sccReview determines which security context constraints accept the pods of the objects in files.
type sccReview struct {
	resource.FilenameOptions
	genericiooptions.IOStreams
	print     *genericclioptions.PrintFlags
	title     string // the review's name in errors
	noHeaders bool
	user      string
	groups    []string
	accounts  []string

	client    dynamic.Interface
	namespace string
}

// newSCCSubjectReview returns `scc-subject-review`, which checks whether a user or a service
// account can create a pod.
func newSCCSubjectReview(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	account := ""
	o := &sccReview{IOStreams: streams, title: "Subject Review"}
	command := o.command(factory, &cobra.Command{
		Use:   "scc-subject-review -f FILENAME",
		Short: "Check whether a user or a service account can create a pod",
		Long: `Check whether a user, a group or a service account can create a pod, or the pods of a controller.

Without --user, --groups and --serviceaccount, the command checks your own permissions.`,
		Example: `  # Check whether you can create the pod of this file
  oc policy scc-subject-review -f pod.yaml

  # Check whether the user bob, who is in projectAdmin, can create it
  oc policy scc-subject-review -u bob -g projectAdmin -f pod.yaml

  # Check whether a service account of the project can create it
  oc policy scc-subject-review -z default -f pod.yaml`,
	}, "RESOURCE\tALLOWED BY", func(ctx context.Context, template corev1.PodTemplateSpec) (runtime.Object, []string, error) {
		if account != "" {
			name := accountOf(account)
			template.Spec.ServiceAccountName = name
			if len(o.groups) > 0 {
				return o.subjectAs(ctx, template, serviceaccount.MakeUsername(o.namespace, name))
			}
		}
		return o.subject(ctx, template, account != "")
	})
	command.Flags().StringVarP(&o.user, "user", "u", "", "User to check.")
	command.Flags().StringSliceVarP(&o.groups, "groups", "g", nil, "Groups to check, or groups of the user.")
	command.Flags().StringVarP(&account, "serviceaccount", "z", "", "Service account of the project to check.")
	return command
}

// newSCCReview returns `scc-review`, which lists the service accounts that can create a pod.
func newSCCReview(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &sccReview{IOStreams: streams, title: "Review"}
	command := o.command(factory, &cobra.Command{
		Use:   "scc-review [-z SERVICEACCOUNT] -f FILENAME",
		Short: "Check which service accounts can create a pod",
		Long: `Check which service accounts can create a pod, or the pods of a controller.

Without -z, the command checks the service account of the pod, or "default".`,
		Example: `  # Check whether the service accounts sa1 and sa2 can create the pod of this file
  oc policy scc-review -z sa1,sa2 -f pod.yaml`,
	}, "RESOURCE\tSERVICE ACCOUNT\tALLOWED BY", o.review)
	command.Flags().StringSliceVarP(&o.accounts, "serviceaccount", "z", nil, "Service accounts of the project to check.")
	return command
}

// command adds flags and a run function to a command. The run function calls send for each object
// in the files. send returns the review, which -o prints, and table rows. Each row contains
// tab-separated cells without the name, which is the first column.
func (o *sccReview) command(factory util.Factory, command *cobra.Command, headings string,
	send func(context.Context, corev1.PodTemplateSpec) (runtime.Object, []string, error)) *cobra.Command {
	o.print = genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)
	command.Args = cobra.NoArgs
	command.Run = func(command *cobra.Command, _ []string) {
		if util.IsFilenameSliceEmpty(o.Filenames, o.Kustomize) {
			util.CheckErr(util.UsageErrorf(command, "specify the file with the objects with -f"))
		}
		util.CheckErr(o.check(command))
		util.CheckErr(o.run(command.Context(), factory, headings, send))
	}
	o.print.AddFlags(command)
	util.AddFilenameOptionFlags(command, &o.FilenameOptions, "of the pods to check.")
	command.Flags().BoolVar(&o.noHeaders, "no-headers", false, "Omit the headings.")
	objects.AddOldPrintFlags(command)
	return command
}

// check returns an error if flags cannot be combined.
func (o *sccReview) check(command *cobra.Command) error {
	account, err := command.Flags().GetString("serviceaccount")
	switch {
	case err != nil: // scc-review has no --user flag and accepts several accounts
		return nil
	case account != "" && o.user != "":
		return util.UsageErrorf(command, "--user and --serviceaccount are mutually exclusive")
	case strings.Contains(account, ","):
		return util.UsageErrorf(command, "only one Service Account is supported")
	}
	return nil
}

func (o *sccReview) run(ctx context.Context, factory util.Factory, headings string,
	send func(context.Context, corev1.PodTemplateSpec) (runtime.Object, []string, error)) (err error) {
	if o.client, err = factory.DynamicClient(); err != nil {
		return err
	}
	if o.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	table := printers.GetNewTabWriter(o.Out)
	defer func() { _ = table.Flush() }()
	headed := o.noHeaders
	return factory.NewBuilder().Unstructured().NamespaceParam(o.namespace).DefaultNamespace().ContinueOnError().
		FilenameParam(false, &o.FilenameOptions).Flatten().Do().
		Visit(func(info *resource.Info, err error) error {
			if err != nil {
				return err
			}
			template, err := podTemplateOf(info.Object.(*unstructured.Unstructured))
			if err != nil {
				return err
			}
			if claims, _, _ := unstructured.NestedSlice(info.Object.(*unstructured.Unstructured).Object, "spec", "volumeClaimTemplates"); len(claims) > 0 {
				return fmt.Errorf("StatefulSet %q with spec.volumeClaimTemplates currently not supported.", info.Name)
			}
			response, rows, err := send(ctx, template)
			if err != nil {
				return fmt.Errorf("unable to compute Pod Security Policy %s for %q: %s", o.title, info.Name, err.Error())
			}
			if format := *o.print.OutputFormat; format != "" && format != "wide" {
				return o.printObject(response)
			}
			if !headed {
				fmt.Fprintln(table, headings)
				headed = true
			}
			writeRows(table, info.Mapping.GroupVersionKind.Kind+"/"+info.Name, rows)
			return nil
		})
}

func writeRows(out io.Writer, name string, rows []string) {
	for _, row := range rows {
		fmt.Fprintf(out, "%s\t%s\n", name, row)
	}
}

// goField matches a field name in Go's spelling, such as .AllowedBy in {.status.AllowedBy.name}.
var goField = regexp.MustCompile(`\.[A-Z]`)

// printObject prints a review. As in OpenShift 3, field names in a JSONPath expression can have
// Go's spelling.
func (o *sccReview) printObject(object runtime.Object) error {
	if strings.HasPrefix(*o.print.OutputFormat, "jsonpath=") {
		*o.print.OutputFormat = goField.ReplaceAllStringFunc(*o.print.OutputFormat, strings.ToLower)
	}
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(object, o.Out)
}

// subject requests a review of a pod template for the selected user, groups or service account. By
// default, it requests a review for the current user.
func (o *sccReview) subject(ctx context.Context, template corev1.PodTemplateSpec, account bool) (runtime.Object, []string, error) {
	if o.user == "" && len(o.groups) == 0 && !account {
		response := &securityv1.PodSecurityPolicySelfSubjectReview{
			TypeMeta: securityType("PodSecurityPolicySelfSubjectReview"),
			Spec:     securityv1.PodSecurityPolicySelfSubjectReviewSpec{Template: template},
		}
		err := sendReview(ctx, o.client, securityv1.GroupVersion.WithResource("podsecuritypolicyselfsubjectreviews"), o.namespace, response, response)
		return response, []string{allowedBy(response.Status)}, err
	}
	return o.subjectAs(ctx, template, o.user)
}

// subjectAs requests a review of a pod template for a user and the selected groups.
func (o *sccReview) subjectAs(ctx context.Context, template corev1.PodTemplateSpec, user string) (runtime.Object, []string, error) {
	response := &securityv1.PodSecurityPolicySubjectReview{
		TypeMeta: securityType("PodSecurityPolicySubjectReview"),
		Spec:     securityv1.PodSecurityPolicySubjectReviewSpec{Template: template, User: user, Groups: o.groups},
	}
	err := sendReview(ctx, o.client, securityv1.GroupVersion.WithResource("podsecuritypolicysubjectreviews"), o.namespace, response, response)
	return response, []string{allowedBy(response.Status)}, err
}

// review requests a review of a pod template for service accounts.
func (o *sccReview) review(ctx context.Context, template corev1.PodTemplateSpec) (runtime.Object, []string, error) {
	response := &securityv1.PodSecurityPolicyReview{
		TypeMeta: securityType("PodSecurityPolicyReview"),
		Spec:     securityv1.PodSecurityPolicyReviewSpec{Template: template, ServiceAccountNames: accountsOf(o.accounts)},
	}
	if err := sendReview(ctx, o.client, securityv1.GroupVersion.WithResource("podsecuritypolicyreviews"), o.namespace, response, response); err != nil {
		return nil, nil, err
	}
	var rows []string
	for _, account := range response.Status.AllowedServiceAccounts {
		rows = append(rows, account.Name+"\t"+allowedBy(account.PodSecurityPolicySubjectReviewStatus))
	}
	return response, rows, nil
}

func securityType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: securityv1.GroupVersion.String(), Kind: kind}
}

// none is printed instead of the name of the constraints if no constraints accept the pod.
const none = "<none>"

func allowedBy(status securityv1.PodSecurityPolicySubjectReviewStatus) string {
	if status.AllowedBy == nil {
		return none
	}
	return status.AllowedBy.Name
}

// accountOf returns the name of a service account. name is the account's name or user name.
func accountOf(name string) string {
	if _, account, err := serviceaccount.SplitUsername(name); err == nil {
		return account
	}
	return name
}

func accountsOf(names []string) (accounts []string) {
	for _, name := range names {
		accounts = append(accounts, accountOf(name))
	}
	return accounts
}

// podTemplateOf returns an object's pod template. For a pod, it returns a template with the content
// of the pod.
func podTemplateOf(object *unstructured.Unstructured) (template corev1.PodTemplateSpec, err error) {
	if object.GetKind() == "Pod" {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &template)
		return template, err
	}
	for _, path := range []string{"spec.template", "spec.jobTemplate.spec.template", "template"} {
		content, ok, _ := unstructured.NestedMap(object.Object, strings.Split(path, ".")...)
		if _, has := content["spec"]; ok && has {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template)
			return template, err
		}
	}
	return template, fmt.Errorf("review %s %q: it has no pod template", object.GetKind(), object.GetName())
}
