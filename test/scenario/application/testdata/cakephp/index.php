<?php
require 'vendor/autoload.php';
$articles = new Articles();
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $articles->add($_POST['title']);
    header('Location: /', true, 302);
    exit;
}
?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Articles</title>
<h1>Articles of MySQL</h1>
<ul>
<?php foreach ($articles->titles() as $title): ?>
<li><?= htmlspecialchars($title) ?></li>
<?php endforeach ?>
</ul>
</html>
