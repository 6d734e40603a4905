package catalogcontroller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// view returns a ClusterServiceBroker with the given restrictions on classes and plans.
func view(classes, plans []string) *brokerView {
	broker := &v1beta1.ClusterServiceBroker{ObjectMeta: metav1.ObjectMeta{Name: "broker"}}
	broker.Spec.CatalogRestrictions = &v1beta1.CatalogRestrictions{ServiceClass: classes, ServicePlan: plans}
	return viewClusterBroker(broker)
}

func service(id string, plans ...string) osb.Service {
	s := osb.Service{ID: id, Name: "name-" + id, Description: "A service"}
	for i, plan := range plans {
		free := i == 0
		s.Plans = append(s.Plans, osb.Plan{ID: id + "-" + plan, Name: plan, Description: "A plan", Free: &free})
	}
	return s
}

func TestRestrictionsSelectClassesAndPlans(t *testing.T) {
	catalog := &osb.Catalog{Services: []osb.Service{service("a", "small", "large"), service("b", "small", "large")}}
	tests := map[string]struct {
		classes, plans         []string
		wantClasses, wantPlans string
	}{
		"none":            {nil, nil, "a b", "a-large a-small b-large b-small"},
		"name":            {[]string{"name=a"}, nil, "a", "a-large a-small"},
		"external name":   {[]string{"spec.externalName in (name-b,name-c)"}, nil, "b", "b-large b-small"},
		"all must match":  {[]string{"name!=a", "spec.externalID=a"}, nil, "", ""},
		"free plans":      {nil, []string{"spec.free=true"}, "a b", "a-small b-small"},
		"plans of class":  {nil, []string{"spec.clusterServiceClass.name=a", "spec.externalName notin (large)"}, "a", "a-small"},
		"name of broker":  {[]string{"spec.clusterServiceBrokerName=broker"}, nil, "a b", "a-large a-small b-large b-small"},
		"no plan remains": {nil, []string{"spec.externalName=huge"}, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := convert(view(tt.classes, tt.plans), catalog)
			if err != nil {
				t.Fatal(err)
			}
			classes := strings.Join(slices.Sorted(maps.Keys(got.classes)), " ")
			plans := strings.Join(slices.Sorted(maps.Keys(got.plans)), " ")
			if classes != tt.wantClasses || plans != tt.wantPlans {
				t.Errorf("classes %q, plans %q, want %q and %q", classes, plans, tt.wantClasses, tt.wantPlans)
			}
		})
	}
}

func TestInvalidCatalogsAreRejected(t *testing.T) {
	twice := service("b", "x")
	twice.Name = "name-a"
	unnamed := service("c", "x")
	unnamed.Plans[0].Name = ""
	long := service(strings.Repeat("a", 251), "x")
	for want, services := range map[string][]osb.Service{
		"not unique in the catalog": {service("a", "x"), twice},
		"is not unique":             {service("a", "x", "x")},
		"must not be empty":         {unnamed},
		"must not be longer":        {long},
	} {
		if _, err := convert(view(nil, nil), &osb.Catalog{Services: services}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestNamesOfObjects(t *testing.T) {
	names := map[string]string{}
	for id, want := range map[string]string{
		"86064792-7ea2-467b-af93-ac9694d96d5b": "86064792-7ea2-467b-af93-ac9694d96d5b",
		"my.service":                           "my.service",
		"zebra":                                "zebra",
		"My_Service":                           "z4dzyz5fzz53zervice",
		"a/b":                                  "az2fzb",
		"-a":                                   "z2dza",
	} {
		got := objectName(id)
		if got != want {
			t.Errorf("name of %q is %q, want %q", id, got, want)
		}
		if other, exists := names[got]; exists {
			t.Errorf("%q and %q have the same name", id, other)
		}
		names[got] = id
	}
}
