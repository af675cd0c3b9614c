"""Everyday questions, and what their vectors have in common: that something is asked.

A sentence embedder puts questions beside questions. Memories are statements, so what all questions share says
nothing about which memory is meant and hides what does. The direction of the mean question is therefore taken
out of a question's vector, as far as it is in it: a query of bare words has little of it and stays as it is.
Removing a common mean from embeddings is due to Mu and Viswanath, "All-but-the-Top" (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["CHINESE", "ENGLISH", "Asking"]

_SHARE = 1.3
"""How much of the common direction is taken out; above 1, as the sample's mean is shorter than the truth."""

ENGLISH = (
    "What is my name?",
    "Where do I live?",
    "What did I do last weekend?",
    "When is my sister's birthday?",
    "Which food does she like?",
    "How many children does he have?",
    "Who is my boss?",
    "Why did they move to another city?",
    "What kind of music does John enjoy?",
    "What is the name of her dog?",
    "Where did we go on holiday last year?",
    "When did he start his new job?",
    "How long have they been married?",
    "What book did she recommend?",
    "Did I tell you about my hobby?",
    "What does my brother do for a living?",
    "How does she usually travel to work?",
    "Which sport does he play?",
    "What was the problem with the car?",
    "Who went to the concert with me?",
    "What are her plans for the summer?",
    "What advice did the doctor give him?",
    "How did she feel about the exam?",
    "What gift did he buy for his wife?",
    "When will the meeting take place?",
    "Where was this photo taken?",
    "What language is she learning?",
    "How much did the ticket cost?",
    "What is his favourite film?",
    "Who taught her to paint?",
    "What did the assistant suggest I should read?",
    "Can you remind me what I said about the project?",
    "What happened at the party?",
    "What time does the train leave?",
    "Which school do their children attend?",
    "How often does he go running?",
    "What does she think about the new house?",
    "What allergies do I have?",
    "What did they eat for dinner?",
    "Why was he late?",
)
CHINESE = (
    "我叫什么名字？",
    "我住在哪里？",
    "上个周末我做了什么？",
    "我妹妹的生日是什么时候？",
    "她喜欢吃什么？",
    "他有几个孩子？",
    "我的老板是谁？",
    "他们为什么搬到别的城市？",
    "小王喜欢什么样的音乐？",
    "她的狗叫什么名字？",
    "去年我们去哪里度假了？",
    "他什么时候开始新工作的？",
    "他们结婚多久了？",
    "她推荐了哪本书？",
    "我跟你说过我的爱好吗？",
    "我哥哥是做什么工作的？",
    "她平时怎么去上班？",
    "他参加什么运动？",
    "车子出了什么问题？",
    "谁和我一起去听了音乐会？",
    "她夏天有什么打算？",
    "医生给了他什么建议？",
    "她对考试的感觉怎么样？",
    "他给妻子买了什么礼物？",
    "会议什么时候开？",
    "这张照片是在哪里拍的？",
    "她在学什么语言？",
    "票花了多少钱？",
    "他最喜欢的电影是什么？",
    "谁教她画画的？",
    "助手建议我读什么？",
    "你能提醒我关于项目我说过什么吗？",
    "聚会上发生了什么事？",
    "火车几点出发？",
    "他们的孩子上哪所学校？",
    "他多久跑一次步？",
    "她觉得新房子怎么样？",
    "我对什么过敏？",
    "他们晚饭吃了什么？",
    "他为什么迟到？",
)


class Asking:
    """The directions of a mean question, by script.

    Args:
        encode: Unit vectors of texts, one row each; called twice, with the sample questions.
    """

    def __init__(self, encode: Callable[[Sequence[str]], npt.NDArray[np.float32]]) -> None:
        self._directions = {
            chinese: _mean(encode(CHINESE if chinese else ENGLISH)) for chinese in (False, True)
        }

    def removed(self, vector: npt.NDArray[np.float32], *, chinese: bool) -> npt.NDArray[np.float32]:
        """The unit vector of a question without what makes it one.

        Args:
            vector: Of the question.
            chinese: Whether it is written in Chinese; every other language is taken as English. The two
                directions are much alike (a cosine of 0.9).
        """
        import numpy as np

        direction = self._directions[chinese]
        left = vector - _SHARE * (vector @ direction) * direction
        return np.asarray(left / max(float(np.linalg.norm(left)), 1e-9), np.float32)


def _mean(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    import numpy as np

    mean = np.asarray(vectors, np.float32).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), np.float32)
