package objects

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// ListOf returns a v1 List that contains objects.
func ListOf(objects []runtime.Object) *corev1.List {
	list := &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, object := range objects {
		list.Items = append(list.Items, runtime.RawExtension{Object: object})
	}
	return list
}

// nameFormat is the -o format that prints only names.
const nameFormat = "name"

// ReplacesCreation reports whether a command that creates several objects only prints them for this
// -o format. As in OpenShift 3, this is true for every format except name.
func ReplacesCreation(format string) bool { return format != "" && format != nameFormat }

// PrintList prints objects as a v1 List in the format that -o selects.
func PrintList(flags *genericclioptions.PrintFlags, all []*unstructured.Unstructured, out io.Writer) error {
	printer, err := flags.ToPrinter()
	if err != nil {
		return err
	}
	list := make([]runtime.Object, len(all))
	for i, object := range all {
		list[i] = object
	}
	return printer.PrintObj(ListOf(list), out)
}

// NamePrinter returns a printer for created objects. If -o is name, the printer prints names. If -o
// is not set, it prints nothing.
func NamePrinter(flags *genericclioptions.PrintFlags) (printers.ResourcePrinter, error) {
	if *flags.OutputFormat == "" {
		return printers.NewDiscardingPrinter(), nil
	}
	return flags.ToPrinter()
}
