package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/slipway-platform/slipway/config"
)

// configurationPages adds a page for each configuration file.
func configurationPages(all pages) error {
	for _, file := range []struct {
		page, title string
		root        reflect.Type
	}{
		{"configuration/master-config.md", "`master-config.yaml`", reflect.TypeFor[config.MasterConfig]()},
		{"configuration/node-config.md", "`node-config.yaml`", reflect.TypeFor[config.NodeConfig]()},
	} {
		page := &strings.Builder{}
		fmt.Fprintf(page, "# %s\n\nOmitted keys have their defaults. `slipway config view` prints all of them.\n", file.title)
		r := newTypes(page)
		if err := r.writeAll(file.root); err != nil {
			return fmt.Errorf("describe %s: %w", file.title, err)
		}
		all[file.page] = page.String()
	}
	return nil
}
