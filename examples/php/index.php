<?php
// A page that shows which program serves it.
$facts = [
    'Host' => gethostname(),
    'Build' => getenv('OPENSHIFT_BUILD_NAME') ?: 'none',
    'Commit' => substr(getenv('OPENSHIFT_BUILD_COMMIT') ?: 'none', 0, 7),
];
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Hello from PHP</title>
<h1><?= htmlspecialchars(getenv('GREETING') ?: 'Hello') ?> from PHP</h1>
<dl>
<?php foreach ($facts as $name => $value): ?>
<dt><?= $name ?><dd><?= htmlspecialchars($value) ?>

<?php endforeach ?>
</dl>
</html>
