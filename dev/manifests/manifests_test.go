package manifests_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const folder = "../../deploy/kubernetes"

// objects decodes every document of the manifests. Unknown and repeated fields are errors, as with `kubectl --validate=strict`.
func objects(t *testing.T) []runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	files, err := filepath.Glob(filepath.FromSlash(folder + "/*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 6)
	var all []runtime.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
		for {
			part := make([]byte, len(text))
			n, err := documents.Read(part)
			if err == io.EOF { //nolint:errorlint // Read returns it unwrapped
				break
			}
			require.NoError(t, err, file)
			object, kind, err := decoder.Decode(part[:n], nil, nil)
			require.NoError(t, err, file)
			require.NotEmpty(t, kind.Kind, file)
			all = append(all, object)
		}
	}
	return all
}

// of returns the objects of a type, by name.
func of[T runtime.Object](all []runtime.Object, name func(T) string) map[string]T {
	found := map[string]T{}
	for _, o := range all {
		if typed, ok := o.(T); ok {
			found[name(typed)] = typed
		}
	}
	return found
}

// pods returns the templates of all pods, by the name of what makes them.
func pods(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	all, found := objects(t), map[string]corev1.PodTemplateSpec{}
	for name, d := range of(all, func(d *appsv1.Deployment) string { return d.Name }) {
		found[name] = d.Spec.Template
	}
	for name, j := range of(all, func(j *batchv1.Job) string { return j.Name }) {
		found[name] = j.Spec.Template
	}
	require.Len(t, found, 3)
	return found
}

// Strict decoding refuses what the API server would ignore.
func TestManifests_AreDecodedStrictly(t *testing.T) {
	t.Parallel()
	for _, o := range objects(t) {
		accessor, ok := o.(interface {
			GetName() string
			GetNamespace() string
		})
		require.True(t, ok)
		require.NotEmpty(t, accessor.GetName())
		require.Equal(t, "jig", accessor.GetNamespace(), accessor.GetName())
	}
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	_, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(
		[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {}\n"), nil, nil)
	require.ErrorContains(t, err, "unknown field")
}

// Every process runs without rights that it does not need.
func TestPods_HaveNoNeedlessRights(t *testing.T) {
	t.Parallel()
	for name, pod := range pods(t) {
		require.False(t, *pod.Spec.AutomountServiceAccountToken, name)
		require.True(t, *pod.Spec.SecurityContext.RunAsNonRoot, name)
		require.Equal(t, int64(65532), *pod.Spec.SecurityContext.RunAsUser, "%s: the user of the Dockerfile", name)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.Spec.SecurityContext.SeccompProfile.Type, name)
		for _, c := range pod.Spec.Containers {
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
			require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
			require.False(t, c.Resources.Requests.Cpu().IsZero(), name)
			require.False(t, c.Resources.Limits.Memory().IsZero(), name)
		}
	}
}

// secretsOf lists the secrets that a pod gets as its environment.
func secretsOf(pod corev1.PodTemplateSpec) []string {
	var names []string
	for _, c := range pod.Spec.Containers {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				names = append(names, from.SecretRef.Name)
			}
		}
	}
	return names
}

// Only the migration gets the owner's role, and workers and servers each get their own.
func TestPods_GetTheirOwnSecrets(t *testing.T) {
	t.Parallel()
	list := pods(t)
	require.Equal(t, []string{"jig-worker"}, secretsOf(list["jig-worker"]))
	require.Equal(t, []string{"jig-server"}, secretsOf(list["jig-server"]))
	require.Equal(t, []string{"jig-owner", "jig-worker", "jig-server"}, secretsOf(list["jig-migrate"]))
	readme, err := os.ReadFile(filepath.FromSlash(folder + "/README.md"))
	require.NoError(t, err)
	for secret, key := range map[string]string{"jig-owner": "JIG_DATABASE_OWNER_URL", "jig-worker": "JIG_DATABASE_URL", "jig-server": "JIG_SERVER_DATABASE_URL"} {
		require.Contains(t, string(readme), "create secret generic "+secret+" --from-literal="+key+"=")
	}
}

// Every setting exists, and those that must agree do.
func TestSettings_Exist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	all := objects(t)
	names := []string{}
	for name := range of(all, func(c *corev1.ConfigMap) string { return c.Name })["jig-settings"].Data {
		names = append(names, name)
	}
	values := map[string]string{}
	for _, pod := range pods(t) {
		for _, c := range pod.Spec.Containers {
			for _, e := range c.Env {
				names, values[e.Name] = append(names, e.Name), e.Value
			}
		}
	}
	require.GreaterOrEqual(t, len(names), 8)
	for _, name := range names {
		require.Contains(t, string(page), "`"+name+"`")
	}
	ingress := of(all, func(i *networkingv1.Ingress) string { return i.Name })["jig"]
	host := ingress.Spec.Rules[0].Host
	require.Equal(t, "https://"+host, values["JIG_PUBLIC_URL"])
	require.Equal(t, []string{host}, ingress.Spec.TLS[0].Hosts)
	require.NotEmpty(t, values["JIG_PROXIES"])
}

// What refers to other objects finds them.
func TestReferences_AreFound(t *testing.T) {
	t.Parallel()
	all, list := objects(t), pods(t)
	for name, d := range of(all, func(d *appsv1.Deployment) string { return d.Name }) {
		require.Subset(t, d.Spec.Template.Labels, d.Spec.Selector.MatchLabels, name)
		require.GreaterOrEqual(t, *d.Spec.Replicas, int32(2), name)
	}
	server := list["jig-server"]
	ports := map[string]int32{}
	for _, p := range server.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, e := range server.Spec.Containers[0].Env {
		switch e.Name {
		case "JIG_HTTP_ADDR":
			require.Equal(t, ":8480", e.Value)
			require.Equal(t, int32(8480), ports["http"])
		case "JIG_SERVER_METRICS_ADDRESS":
			require.Equal(t, ":9465", e.Value)
			require.Equal(t, int32(9465), ports["metrics"])
		}
	}
	probes := server.Spec.Containers[0]
	require.Equal(t, "/readyz", probes.ReadinessProbe.HTTPGet.Path)
	require.Equal(t, "/healthz", probes.LivenessProbe.HTTPGet.Path)
	service := of(all, func(s *corev1.Service) string { return s.Name })["jig-server"]
	require.True(t, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(server.Labels)))
	require.False(t, labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(list["jig-worker"].Labels)))
	require.Equal(t, "http", service.Spec.Ports[0].TargetPort.StrVal)
	backend := of(all, func(i *networkingv1.Ingress) string { return i.Name })["jig"].Spec.Rules[0].HTTP.Paths[0].Backend.Service
	require.Equal(t, service.Name, backend.Name)
	require.Equal(t, service.Spec.Ports[0].Name, backend.Port.Name)
	budget := of(all, func(b *policyv1.PodDisruptionBudget) string { return b.Name })["jig-server"]
	require.Subset(t, server.Labels, budget.Spec.Selector.MatchLabels)
	claims := of(all, func(c *corev1.PersistentVolumeClaim) string { return c.Name })
	for name, pod := range list {
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				require.Contains(t, claims, v.PersistentVolumeClaim.ClaimName, name)
			}
		}
		for _, m := range pod.Spec.Containers[0].VolumeMounts {
			require.True(t, slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }), "%s: %s", name, m.Name)
		}
	}
	policies := of(all, func(p *networkingv1.NetworkPolicy) string { return p.Name })
	policy := policies["jig"]
	require.True(t, labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(server.Labels)))
	for _, rule := range policy.Spec.Ingress {
		require.NotEmpty(t, rule.From)
		require.Contains(t, ports, rule.Ports[0].Port.StrVal)
	}
	for name, pod := range list { // every process is confined, and only those that need it reach public addresses
		for policy, confines := range map[string]bool{"jig-egress": true, "jig-public": name != "jig-migrate"} {
			selector, err := metav1.LabelSelectorAsSelector(&policies[policy].Spec.PodSelector)
			require.NoError(t, err)
			require.Equal(t, confines, selector.Matches(labels.Set(pod.Labels)), "%s: %s", name, policy)
			require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, policies[policy].Spec.PolicyTypes)
			for _, rule := range policies[policy].Spec.Egress {
				require.NotEmpty(t, rule.To)
				require.NotEmpty(t, rule.Ports)
			}
		}
	}
	public := policies["jig-public"].Spec.Egress[0].To[0].IPBlock
	require.Subset(t, public.Except, []string{"10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"})
}

// Servers have their key, and workers the public root key alone. The script makes both.
func TestPods_HaveTheirKeys(t *testing.T) {
	t.Parallel()
	list := pods(t)
	script, err := os.ReadFile(filepath.FromSlash(folder + "/keys.sh"))
	require.NoError(t, err)
	server := list["jig-server"].Spec
	require.Equal(t, "jig-server-key", server.Volumes[0].Secret.SecretName)
	require.Equal(t, "/keys", server.Containers[0].VolumeMounts[0].MountPath)
	require.True(t, server.Containers[0].VolumeMounts[0].ReadOnly)
	require.Contains(t, server.Containers[0].Env, corev1.EnvVar{Name: "JIG_SERVER_KEY", Value: "/keys/server.key"})
	require.Contains(t, string(script), "create secret generic jig-server-key --from-file=server.key=")
	maps := []string{}
	for _, from := range list["jig-worker"].Spec.Containers[0].EnvFrom {
		if from.ConfigMapRef != nil {
			maps = append(maps, from.ConfigMapRef.Name)
		}
	}
	require.Equal(t, []string{"jig-settings", "jig-root-key"}, maps)
	require.Contains(t, string(script), "create configmap jig-root-key --from-literal=JIG_ROOT_KEY=")
	for name, pod := range list {
		for _, v := range pod.Spec.Volumes {
			require.Equal(t, name == "jig-server", v.Secret != nil, name)
		}
	}
}

// The files that the README names exist.
func TestReadme_NamesTheFiles(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.FromSlash(folder + "/README.md"))
	require.NoError(t, err)
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(readme), -1) {
		_, err := os.Stat(filepath.Join(filepath.FromSlash(folder), filepath.FromSlash(link[1])))
		require.NoError(t, err, link[1])
	}
	files, err := filepath.Glob(filepath.FromSlash(folder + "/*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "# "), "%s says what it is for", file)
	}
}
