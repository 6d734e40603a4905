// Package arguments sets an upstream program's flags from a configuration file.
package arguments

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Map maps the name of each flag to one or more values, as in OpenShift 3's `apiServerArguments`,
// `controllerArguments`, `schedulerArguments`, `kubeletArguments` and `proxyArguments`.
type Map map[string][]string

// ApplyTo sets each flag in every flag set that defines it. It reports every unknown flag and every
// invalid value. Each message begins with setting, the configuration key.
func (m Map) ApplyTo(setting string, sets ...*pflag.FlagSet) error {
	flags := pflag.NewFlagSet(setting, pflag.ContinueOnError)
	for _, set := range sets {
		flags.AddFlagSet(set)
	}
	var problems []string
	for name, values := range m {
		if flags.Lookup(name) == nil {
			problems = append(problems, fmt.Sprintf(
				"%s.%s: unknown argument in this version of Kubernetes; remove it", setting, name))
			continue
		}
		for _, value := range values {
			if err := flags.Set(name, value); err != nil {
				problems = append(problems, fmt.Sprintf("%s.%s: %v", setting, name, err))
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	return errors.New(strings.Join(problems, "\n"))
}
