package arguments

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestArgumentsSetFlags(t *testing.T) {
	first, second := pflag.NewFlagSet("a", pflag.ContinueOnError), pflag.NewFlagSet("b", pflag.ContinueOnError)
	size := first.Int("max-pods", 110, "")
	labels := second.StringSlice("node-labels", nil, "")
	arguments := Map{"max-pods": {"250"}, "node-labels": {"a=b", "c=d"}}
	if err := arguments.ApplyTo("kubeletArguments", first, second); err != nil {
		t.Fatal(err)
	}
	if *size != 250 || len(*labels) != 2 {
		t.Errorf("max-pods is %d and node-labels %q", *size, *labels)
	}
}

func TestInvalidArgumentsAreReportedWithKey(t *testing.T) {
	flags := pflag.NewFlagSet("a", pflag.ContinueOnError)
	flags.Int("max-pods", 110, "")
	err := Map{"max-pods": {"many"}, "allow-privileged": {"true"}}.ApplyTo("kubeletArguments", flags)
	const want = "kubeletArguments.allow-privileged: unknown argument in this version of Kubernetes; remove it\n" +
		`kubeletArguments.max-pods: invalid argument "many" for "--max-pods" flag: strconv.ParseInt: parsing "many": invalid syntax`
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
